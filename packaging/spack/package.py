# A recipe for Spack 1.0 and later: packages/xstrace/package.py in a repository of your own (spack repo create). `git` is where you
# have xstrace from. A version of a release's archive (`meson dist`) has a url and the checksum that sha256sum tells in its place.
from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class Xstrace(MesonPackage):
    """Traces programs that use GPUs and accelerator libraries: OpenCL, Level Zero, CUDA, SYCL, OpenMP, MPI, ITT."""

    git = "file:///opt/src/xstrace"

    license("Apache-2.0")

    version("main", branch="main")

    variant("opencl", default=True, description="OpenCL")
    variant("level_zero", default=False, description="Level Zero")
    variant("cuda", default=False, description="CUDA")
    variant("stacks", default=True, description="where threads are (--stacks)")

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("pkgconfig", type="build")
    depends_on("zstd libs=static")
    depends_on("zlib-api")
    depends_on("opencl-headers", type="build", when="+opencl")
    depends_on("oneapi-level-zero", when="+level_zero")
    depends_on("cuda", type="build", when="+cuda")
    depends_on("libunwind", when="+stacks")

    def meson_args(self):
        features = ("opencl", "level_zero", "cuda", "stacks")
        chosen = [f"-D{name}={'enabled' if f'+{name}' in self.spec else 'disabled'}" for name in features]
        return [*chosen, "-Dtests=disabled"]

"""The software CUDA for a test: its environment, and afterwards its log, which is the truth (tests/softcuda/README.md).

cuda = SoftCUDA(tmp_path, SYNC=1)            # SOFTCUDA_SYNC=1, the libraries of CUDA 13
xstrace("--chrome-kernel-logging", "cuda_streams", ["--kernels", 5], env=cuda.env)
cuda.kernels[0].name, cuda.kernels[0].start  # by the clock that CUPTI stamps with; .start_ns, .end_ns: CLOCK_MONOTONIC_RAW
"""

import csv
import functools
from types import SimpleNamespace

from conftest import BUILD

LIBRARIES = BUILD / "tests/softcuda"
HAVE_SOFTCUDA = (LIBRARIES / "libcuda.so.1").exists()
TEXT = {"kind", "name", "grid", "block"}


class SoftCUDA:
    def __init__(self, folder, cuda=13, **settings):
        self.path = folder / "softcuda.log"
        self.libraries = LIBRARIES / f"cuda{cuda}"
        self.env = {
            "LD_LIBRARY_PATH": f"{self.libraries}:{LIBRARIES}",
            "SOFTCUDA_LOG": str(self.path),
        }
        self.env |= {f"SOFTCUDA_{name}": str(value) for name, value in settings.items()}

    @functools.cached_property
    def lines(self):
        return self.path.read_text().splitlines() if self.path.exists() else []

    @property
    def notes(self):
        return [line[2:] for line in self.lines if line.startswith("# ")]

    @functools.cached_property
    def commands(self):
        """All that were executed, in their order; each field of the log is an attribute."""
        rows = csv.DictReader(
            (line for line in self.lines if not line.startswith("#")),
            delimiter="\t",
            quoting=csv.QUOTE_NONE,
        )
        found = [
            SimpleNamespace(
                **{key: value if key in TEXT else int(value) for key, value in row.items()}
            )
            for row in rows
            if None not in row.values()  # the program was killed in the middle of a line
        ]
        return sorted(found, key=lambda command: (command.pid, command.seq))

    def of(self, *kinds):
        return [command for command in self.commands if command.kind in kinds]

    @property
    def kernels(self):
        return self.of("kernel")

    @property
    def copies(self):
        return self.of("copy", "peer")

    @property
    def fills(self):
        return self.of("set")

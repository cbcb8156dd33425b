"""The software GPU for a test: its environment, and afterwards its log, which is the truth (tests/softgpu/README.md).

gpu = SoftGPU(tmp_path, TILES=2, SYNC=1)     # SOFTGPU_TILES=2 SOFTGPU_SYNC=1
xstrace("--chrome-kernel-logging", "ze_matrix", ["--kernels", 5], env=gpu.env)
gpu.kernels[0].name, gpu.kernels[0].start    # ticks; .start_ns, .end_ns: the host's clock around it
"""

import csv
import functools
import itertools
from types import SimpleNamespace

from conftest import BUILD

DRIVER = BUILD / "tests/softgpu/libze_softgpu.so"
TEXT = {"kind", "name", "groups", "size", "queue", "list"}

# kind of list, its order, events, what is waited for: all that go together
MATRIX = [
    (kind, order, events, sync)
    for kind, order, events, sync in itertools.product(
        ("regular", "immediate"),
        ([], ["--in-order"]),
        ("none", "timed", "plain", "counter"),
        ("queue", "event", "fence", "none"),
    )
    if (kind, sync) != ("immediate", "fence") and (events != "counter" or order)
]


def matrix_args(kind, order, events, sync):
    """Of ze_matrix, for one of MATRIX."""
    args = ["--list", kind, *order, "--events", events, "--sync", sync, "--executions", 3]
    args += ["--kernels", 5, "--copies", 7, "--fills", 3, "--regions", 2, "--barriers"]
    if events != "none":
        args += ["--chain"]
    if sync == "none" and events != "counter":
        args += ["--device-reset"]
    return args


class SoftGPU:
    def __init__(self, folder, **settings):
        self.path = folder / "softgpu.log"
        self.env = {"ZE_ENABLE_ALT_DRIVERS": str(DRIVER), "SOFTGPU_LOG": str(self.path)}
        self.env |= {f"SOFTGPU_{name}": str(value) for name, value in settings.items()}

    @functools.cached_property
    def lines(self):
        return self.path.read_text().splitlines() if self.path.exists() else []

    @property
    def misuse(self):
        return [line for line in self.lines if line.startswith("#")]

    @functools.cached_property
    def commands(self):
        """All that were executed, in the order of their starts; each field of the log is an attribute."""
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
        ]
        return sorted(found, key=lambda command: (command.pid, command.seq))

    def of(self, *kinds):
        return [command for command in self.commands if command.kind in kinds]

    @property
    def kernels(self):
        return self.of("kernel")

    @property
    def copies(self):
        return self.of("copy", "fill", "region")

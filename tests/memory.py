"""How much memory a command takes at most.

The kernel remembers the largest size that a process ever had, the one before exec() too: so a small process starts the command, not
the test's own.
"""

import os
import subprocess
import sys

MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as out:
    out.write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status) & 255)
"""


def run_for_peak(place, command, **more):
    """Runs it; the CompletedProcess, with its `peak` and that of its children in KiB. place: a directory for a file."""
    command = [sys.executable, "-c", MEASURE, str(place / "peak"), *map(str, command)]
    env = {key: value for key, value in more.pop("env", os.environ).items() if key != "MALLOC_PERTURB_"}  # it touches all that is taken
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=env, **more)
    done.peak = int((place / "peak").read_text())
    return done


def wide_frame(text, log, blanks=100 << 20):
    """A zstd frame whose header asks for a window of 2**log bytes: the text, and so many blanks."""
    import zstandard

    options = zstandard.ZstdCompressionParameters(window_log=log, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=options).compressobj()
    parts = [compressor.compress(text.encode())]
    parts += [compressor.compress(b" " * (1 << 20)) for _ in range(blanks >> 20)]
    return b"".join(parts) + compressor.flush()

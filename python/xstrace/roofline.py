"""roofline.py: how near kernels come to what a device can do, with the options of unitrace's script of that name.

A kernel's point has the arithmetic intensity (FLOP/byte) as x and its rate (GFLOP/s) as y, once for each level of memory:

    FLOP = sum over its executions of FP64 * 32, FP32 * 32, FP16 * 64 or (FP16_XMX + BF16_XMX) * 512: of its precision alone
    bytes of a level = what was read + what was written there
    roof of a level at x = min(peak of the kernel's precision, x * bandwidth of the level)

FP64 ... are instructions of a vector engine as Intel's metrics count them (XVE_INST_EXECUTED_FP64[events], ...). Each works on 16
values of 32 bits (16 of 64 on the devices that have VectorEngine138), and counts two operations for each, as a multiply-add has; of a
matrix engine (XMX), eight times 16 bits. These factors are unitrace's. A kernel's precision is the one with most operations.

Of CUDA (--compute-group Flops --memory-group ComputeBasic), with CUPTI's metrics smsp__sass_thread_inst_executed_op_<p><op>_pred_on.sum:

    FLOP of a precision = add + mul + 2 * fma        p: h (FP16), f (FP32), d (FP64); tensor cores are not counted
    bytes               = l1tex__t_bytes (L1), lts__t_bytes (L2, here L3), dram__bytes_read + dram__bytes_write (gpu_memory)
"""

from __future__ import annotations

import argparse
import collections
import csv
import glob
import math
import os
import shlex
import shutil
import subprocess
import sys
from typing import NamedTuple

from .charts import ChartsError, figure, put
from .cli import Parser, clip_middle, printable, said, say_unusable
from .metrics import NOT_A_SAMPLE, MetricsError, load, nearest
from .running import SMALL, command, opened, spare
from .temporary import Directory

COMMAND = "roofline.py"
# their peaks and bandwidths in a device configuration
PRECISIONS = {
    "FP16": "FP16_GFLOPS",
    "FP32": "FP32_GFLOPS",
    "FP64": "FP64_GFLOPS",
    "BF16_XMX": "BF16_XMX_GFLOPS",
    "FP16_XMX": "FP16_XMX_GFLOPS",
}
LEVELS = {"L1": "L1_BW_in_GB_per_sec", "L3": "L3_BW_in_GB_per_sec", "gpu_memory": "GPU_MEMORY_BW_in_GB_per_sec"}


class Counters(NamedTuple):
    """Which metrics count what. time: ns; flop: operations of each instruction that a metric counts, by precision; bytes: by level."""

    time: str
    flop: dict
    bytes: dict


def _cuda_flop(letter):
    return {f"smsp__sass_thread_inst_executed_op_{letter}{what}_pred_on.sum": count for what, count in (("add", 1), ("mul", 1), ("fma", 2))}


INTEL = Counters(
    "GpuTime[ns]",
    {
        "FP16": {"XVE_INST_EXECUTED_FP16[events]": 64},
        "FP32": {"XVE_INST_EXECUTED_FP32[events]": 32},
        "FP64": {"XVE_INST_EXECUTED_FP64[events]": 32},
        "BF16_XMX": {"XVE_INST_EXECUTED_XMX_BF16[events]": 512},
        "FP16_XMX": {"XVE_INST_EXECUTED_XMX_FP16[events]": 512},
    },
    {
        "L1": ("LOAD_STORE_CACHE_BYTE_READ[bytes]", "LOAD_STORE_CACHE_BYTE_WRITE[bytes]"),
        "L3": ("L3_BYTE_READ[bytes]", "L3_BYTE_WRITE[bytes]"),
        "gpu_memory": ("GPU_MEMORY_BYTE_READ[bytes]", "GPU_MEMORY_BYTE_WRITE[bytes]"),
    },
)
# CUPTI's own names of units may differ: names are compared without
NVIDIA = Counters(
    "gpu__time_duration.sum",
    {"FP16": _cuda_flop("h"), "FP32": _cuda_flop("f"), "FP64": _cuda_flop("d")},
    {"L1": ("l1tex__t_bytes.sum",), "L3": ("lts__t_bytes.sum",), "gpu_memory": ("dram__bytes_read.sum", "dram__bytes_write.sum")},
)
OPTIONAL = {"L1"}
NAME = "PlatformName"
SMALLEST, LARGEST = 8, 60  # of points, in pixels
NAME_WIDTH = 80
TOLD = 3  # kernels, of those that something is to be said of


class Misuse(Exception):
    """The options do not fit together, or a file does not have what is needed; the text is one line."""


class Device:
    """What a device can do. name; peaks: GFLOP/s by precision; bandwidths: GB/s by level. Raises OSError, Misuse."""

    def __init__(self, path):
        found = {}
        with opened(path, most=SMALL, encoding="utf-8", errors="replace", newline="") as file:
            try:
                for row in csv.reader(file, skipinitialspace=True):
                    if row and not row[0].startswith("#"):
                        key = row[0].strip()
                        if key in found:
                            raise Misuse(f"{path}: it has {said(key)} twice")
                        found[key] = row[1].strip() if len(row) > 1 else ""
            except csv.Error as error:
                raise Misuse(f"{path}: {error}: no file of a device") from error
        self.path, self.found = path, found
        self.name = found.get(NAME, os.path.basename(path))
        self.peaks = {name: self._number(key) for name, key in PRECISIONS.items() if key in found}
        self.bandwidths = {name: self._number(key) for name, key in LEVELS.items() if name not in OPTIONAL or key in found}
        if not self.peaks:
            raise Misuse(f"{path}: it has no peak of any precision, such as FP32_GFLOPS")

    def _number(self, key):
        if key not in self.found:
            raise Misuse(f"{self.path}: it has no {key}{nearest(key, self.found)}")
        try:
            value = float(self.found[key])
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise Misuse(f'{self.path}: {key} is "{said(self.found[key])}", not a number above 0')
        return value

    def needs(self, kernel):
        """Raises Misuse where the kernel's precision has no peak."""
        if kernel.precision not in self.peaks:
            key = PRECISIONS[kernel.precision]
            raise Misuse(f'{self.path}: it has no {key}{nearest(key, self.found)}, which kernel "{said(kernel.name)}" needs')

    def roof(self, precision, level, intensity):
        return min(self.peaks[precision], intensity * self.bandwidths[level])


class Kernel:
    """All executions of one kernel. flop: by precision; bytes: by level; ns, executions: of each of the two runs that were measured."""

    def __init__(self, name):
        self.name = name
        self.flop, self.bytes, self.ns = collections.Counter(), collections.Counter(), {"compute": 0.0, "memory": 0.0}
        self.executions = {"compute": 0, "memory": 0}

    @property
    def precision(self):
        return max(PRECISIONS, key=lambda name: self.flop[name])

    def rate(self, precision):
        return self.flop[precision] / self.ns["compute"] if self.ns["compute"] else 0.0  # FLOP per ns are GFLOP/s

    def intensity(self, level):
        """Of the mean execution: one run may have had more of them."""
        times = self.executions["memory"] / self.executions["compute"]
        return self.flop[self.precision] * times / self.bytes[level] if self.bytes[level] else math.inf

    def bound(self, device):
        """Which roof is the lowest above it: a level's name or "compute"."""
        roofs = {level: self.intensity(level) * device.bandwidths[level] for level in device.bandwidths if self.bytes[level]}
        roofs["compute"] = device.peaks[self.precision]
        return min(roofs, key=roofs.get)


# ---- reading ----


def kernels_of(compute, memory):
    """Two lists of Kernels, from the sections of two files (either order): those that both have, and others. Raises Misuse."""
    counters = NVIDIA if _has(compute, [NVIDIA.time]) or _has(memory, [NVIDIA.time]) else INTEL
    of_compute = [metric for metrics in counters.flop.values() for metric in metrics]
    of_memory = [metric for name, metrics in counters.bytes.items() for metric in metrics if name not in OPTIONAL]
    if _has(memory, of_compute) and _has(compute, of_memory):
        compute, memory = memory, compute
    for sections, names, what in ((compute, of_compute, "--compute"), (memory, of_memory, "--memory")):
        if not _has(sections, [counters.time, *names]):
            missing = next(name for name in [counters.time, *names] if not any(_column(section, name) for section in sections))
            raise Misuse(f"the file of {what} has no metric {missing}: it is of another group")
    found = {}
    for sections, what, fill, names in ((compute, "compute", _add_flop, of_compute), (memory, "memory", _add_bytes, of_memory)):
        for section in sections:
            time, is_whole = _column(section, counters.time), _has([section], names)
            for one in section.instances:
                if time and not one.kernel.startswith(NOT_A_SAMPLE):
                    kernel = found.setdefault(one.kernel, Kernel(one.kernel))
                    kernel.ns[what] += sum(one[time])
                    kernel.executions[what] += is_whole
                    fill(kernel, counters, section, one)
    for kernel in found.values():
        if not all(0 <= value < math.inf for values in (kernel.ns, kernel.flop, kernel.bytes) for value in values.values()):
            raise Misuse(f'kernel "{said(kernel.name)}" has a time or a count that is below 0 or no number')
    both, others = [], []
    for kernel in found.values():
        (both if all(kernel.ns.values()) and all(kernel.executions.values()) else others).append(kernel)
    if not both:
        raise Misuse("no kernel is in both files")
    return both, others


def _column(section, name):
    """The section's metric of that name, or of that name without a unit; None: it has none."""
    if name in section.metrics:
        return name
    return next((metric for metric in section.metrics if metric.split("[")[0] == name), None)


def _has(sections, names):
    return any(all(_column(section, name) for name in names) for section in sections)


def _add_flop(kernel, counters, section, one):
    for name, metrics in counters.flop.items():
        for metric, operations in metrics.items():
            if column := _column(section, metric):
                kernel.flop[name] += sum(one[column]) * operations


def _add_bytes(kernel, counters, section, one):
    for name, metrics in counters.bytes.items():
        for metric in metrics:
            if column := _column(section, metric):
                kernel.bytes[name] += sum(one[column])


# ---- showing ----


def summary(kernels, device):
    """A table of comma-separated values, as lines, the longest kernel first."""
    levels = list(reversed(device.bandwidths))
    head = ["Kernel_name", "time_elapsed (s)", "% of Total time", "Bounded_by", *(f"{name} (GFLOPS)" for name in PRECISIONS)]
    yield ", ".join([*head, *(f"AI ({name})" for name in levels), *(f"{name} (GB/s)" for name in levels), "% of roof"])
    total = sum(kernel.ns["memory"] for kernel in kernels)
    for kernel in sorted(kernels, key=lambda one: -one.ns["memory"]):
        ns, bound = kernel.ns["memory"], kernel.bound(device)
        roof = device.peaks[kernel.precision] if bound == "compute" else device.roof(kernel.precision, bound, kernel.intensity(bound))
        values = [ns / 1e9, 100 * ns / total, *(kernel.rate(name) for name in PRECISIONS)]
        values += [kernel.intensity(name) for name in levels] + [kernel.bytes[name] / ns for name in levels]
        numbers = [f"{value:.6g}" for value in values]
        share = 100 * kernel.rate(kernel.precision) / roof if roof else 0
        name = '"' + printable(kernel.name).replace('"', '""') + '"'
        yield ", ".join([name, *numbers[:2], bound, *numbers[2:], f"{share:.4g}"])


def chart(kernels, device, title):
    """The page: a figure of plotly. Raises ChartsError."""
    total = sum(kernel.ns["memory"] for kernel in kernels)
    precisions = {kernel.precision for kernel in kernels}
    xs = [kernel.intensity(level) for kernel in kernels for level in device.bandwidths if kernel.bytes[level]]
    low, high = min([0.01, *(x / 4 for x in xs)]), max([1000.0, *(4 * x for x in xs)])
    drawn = [_roof(device, precision, level, low, high) for precision in sorted(precisions) for level in device.bandwidths]
    symbols = dict(zip(LEVELS, ("diamond", "square", "circle"), strict=True))
    for kernel in sorted(kernels, key=lambda one: -one.ns["memory"]):
        share = kernel.ns["memory"] / total
        levels = [level for level in device.bandwidths if kernel.bytes[level]]
        text = [
            f"{kernel.name}<br>{100 * share:.2f} % of the time, {kernel.precision}, {level}, bound by {kernel.bound(device)}"
            for level in levels
        ]
        drawn.append({
            "kind": "points", "name": f"{100 * share:.2f} % {clip_middle(kernel.name, NAME_WIDTH)}", "x": [kernel.intensity(level) for level in levels],
            "y": [kernel.rate(kernel.precision)] * len(levels), "text": text, "symbols": [symbols[level] for level in levels],
            "size": SMALLEST + (LARGEST - SMALLEST) * share,
        })  # fmt: skip
    return figure(title, "Arithmetic Intensity (FLOP/byte)", "Performance (GFLOP/s)", drawn)


def _roof(device, precision, level, low, high):
    ridge = device.peaks[precision] / device.bandwidths[level]
    x = [low, ridge, max(high, 2 * ridge)]
    name = f"{precision} {device.peaks[precision]:g} GFLOP/s, {level} {device.bandwidths[level]:g} GB/s"
    return {"kind": "line", "name": name, "x": x, "y": [device.roof(precision, level, one) for one in x]}


# ---- measuring ----


def profile(options):
    """Runs the application under the tracer, once for each group; the paths of what it wrote, in a folder. Raises Misuse."""
    tracer, words = _tracer(options), _words(options.app)
    found = []
    with Directory("roofline.") as folder:
        for what, group in (("compute", options.compute_group), ("memory", options.memory_group)):
            run = subprocess.run([tracer, "--group", group, "-q", "-o", os.path.join(folder, what), *words], check=False)
            files = glob.glob(os.path.join(folder, f"{what}.metrics*"))
            if not files:
                raise Misuse(f"{tracer} --group {group} -q has written no metrics (status {run.returncode})")
            if run.returncode:
                print(f"{COMMAND}: {printable(words[0])} ended with status {run.returncode}", file=sys.stderr)
            found.append([section for path in sorted(files) for section in load(path)])
    return found


def _words(text):
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Misuse(f"--app {text}: {error}") from error
    if not words:
        raise Misuse("--app: it names no application")
    return words


def _tracer(options):
    for given in (options.xstrace, options.unitrace):
        if given:
            path = shutil.which(given)
            if not path:
                raise Misuse(f"{given}: there is no such program")
            return path
    beside = os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), "xstrace")
    path = beside if os.access(beside, os.X_OK) else shutil.which("xstrace") or shutil.which("unitrace")
    if not path:
        raise Misuse("xstrace was not found: give it by --xstrace")
    return path


def _options(argv):
    class Options(Parser):
        def refuse(self, text):
            raise Misuse(text)

    parser = Options(prog=COMMAND, description=__doc__, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--compute", metavar="FILE", help="metrics of -q, with the instructions of each precision")
    add("--memory", metavar="FILE", help="metrics of -q, with the bytes of each level of memory")
    add("--app", metavar="COMMAND", help="measure this application, in two runs, instead")
    add("--device", metavar="FILE", required=True, help="what the device can do: NAME,VALUE in each line")
    add("--output", metavar="FILE", required=True, help="the chart, HTML (.html is added)")
    add("--xstrace", metavar="PATH", help="the tracer (default: beside this script, or in PATH)")
    add("--unitrace", metavar="PATH", help="measure by unitrace")
    add(
        "--compute-group",
        metavar="NAME",
        default="VectorEngine138",
        help="metric group of --compute (default VectorEngine138; of CUDA: Flops)",
    )
    add("--memory-group", metavar="NAME", default="ComputeBasic", help="metric group of --memory (default ComputeBasic)")
    options = parser.parse_args(argv)
    if bool(options.app) == bool(options.compute or options.memory) or bool(options.compute) != bool(options.memory):
        raise Misuse("either --app COMMAND or both --compute FILE and --memory FILE are needed")
    return options


def _tell(what, kernels):
    """One line on stderr, where there are such kernels; with the names of the first."""
    if kernels:
        names = ", ".join(f'"{clip_middle(kernel.name, NAME_WIDTH)}"' for kernel in kernels[:TOLD]) + ", …" * (len(kernels) > TOLD)
        print(printable(f"{COMMAND}: {len(kernels)} kernel{'s' * (len(kernels) > 1)} {what}: {names}"), file=sys.stderr)


@command(COMMAND, 1)
def main(argv=None):
    """The command: 0, or 1 when options or files are not as they must be."""
    path = None
    try:
        options = _options(argv)
        out = options.output if options.output.endswith((".html", ".htm")) else options.output + ".html"
        spare([options.device, options.compute, options.memory], [out])
        device = Device(options.device)
        if options.app:
            compute, memory = profile(options)
        else:
            path = options.compute
            compute = load(path)
            path = options.memory
            memory = load(path)
            path = None
        both, others = kernels_of(compute, memory)
        kernels = [kernel for kernel in both if kernel.flop.total()]
        if not kernels:
            raise Misuse("no kernel has executed an operation of a precision that is counted")
        for kernel in kernels:
            device.needs(kernel)
        _tell("in one file alone, or without a time, and left out", others)
        _tell("without an operation of a precision that is counted, and left out", [kernel for kernel in both if not kernel.flop.total()])
        _tell(
            "executed more often in one run than in the other; what is said of them is of the mean execution",
            [kernel for kernel in kernels if len(set(kernel.executions.values())) > 1],
        )
        put([chart(kernels, device, f"{os.path.basename(options.output)} on {device.name}")], out)
        print(*summary(kernels, device), sep="\n")
        print(f"Roofline is stored in {printable(out)}")
    except (Misuse, ChartsError) as error:
        print(f"{COMMAND}: {printable(error)}", file=sys.stderr)
        return 1
    except MetricsError as error:
        say_unusable(COMMAND, path or "metrics", error)
        return 1
    except OSError as error:
        if not error.filename and not path:
            raise  # of what is written, not of the inputs
        say_unusable(COMMAND, error.filename or path, error)
        return 1
    return 0

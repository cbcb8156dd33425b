"""analyzeperfmetrics.py: charts and reports of hardware metrics, with the options of unitrace's script of that name."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys

from .charts import Chart, ChartsError, put
from .cli import Parser, printable, said, say_unusable
from .metrics import NOT_A_SAMPLE, MetricsError, load, nearest
from .running import command, opened, spare, written
from .stalls import Dump, report

COMMAND = "analyzeperfmetrics.py"
TIMES = ("GpuTime[ns]", "gpu__time_duration.sum[ns]")
INSTRUCTIONS = 100  # on a chart
MOST_DRAWN = 1000  # executions: nobody looks at more pages, which take 45 KB and 2 ms each
MOST_OPTIONS = 64 << 10  # bytes of a file of options, for which shlex takes a time that grows as the square …
MOST_WORDS = 1000  # … and so does argparse for its words
PER_SAMPLE = "Time(in sampling intervals)"


class Misuse(Exception):
    """The options do not fit together, or the file has nothing for them; the text is one line."""


class Options(Parser):
    def refuse(self, text):
        raise Misuse(text)


class _FromFile(argparse.Action):
    """Options of a file, as if they stood here; the input file cannot be among them."""

    def __call__(self, parser, namespace, value, option_string=None):
        try:
            with opened(value, most=MOST_OPTIONS, encoding="utf-8") as file:
                words = shlex.split(file.read())
            if len(words) > MOST_WORDS:
                raise Misuse(f"{value}: more than {MOST_WORDS} words")
        except (OSError, ValueError) as error:
            raise Misuse(f"{value}: {getattr(error, 'strerror', None) or error}") from None
        if any(word.split("=")[0] in ("-f", "--config") for word in words):
            raise Misuse(f"{value}: it names a further file of options")
        namespace.read = [*getattr(namespace, "read", []), value]
        read, rest = _parser(False).parse_known_args(words, namespace)
        if rest:
            raise Misuse(f"{value}: '{said(rest[0])}' is no option of this command")


def _parser(with_input=True):
    parser = Options(prog=COMMAND, description=__doc__, allow_abbrev=False, add_help=with_input)
    add = parser.add_argument
    add("-l", "--list", action="store_true", help="list devices, metrics and kernels of the file")
    add("-d", "--device", type=int, default=0, metavar="N", help="device (default 0)")
    add("-k", "--kernel", metavar="NAME", help="kernel, with its shape as -l shows it (default: all)")
    add("-i", "--instance", type=int, default=1, metavar="N", help="which execution of the kernel; below 1: all (default: the first)")
    add("-m", "--metrics", action="append", metavar="A,B,...", help="metrics of one chart; may be repeated")
    add("-b", "--throughput", action="append", metavar="A,B,...", help="metrics that count bytes, shown in GB/s; may be repeated")
    add("-y", "--ylabel", action="append", metavar="TEXT", help="the label of the y axis, one for each -m")
    add("-x", "--xlabel", default=PER_SAMPLE, metavar="TEXT", help=f"the label of the x axis (default: {PER_SAMPLE})")
    add("-t", "--title", default="Performance Metrics", metavar="TEXT", help="the charts' title")
    add("-o", "--output", metavar="FILE", help="the charts: HTML if it ends in .html, else PDF; with -l: the list")
    add("-s", "--shaderdump", metavar="DIR", help="shader dump: the instructions and lines of stalls")
    add("-n", "--numtopstalls", type=int, default=10, metavar="N", help="instructions for each reason to stall; below 0: all (default 10)")
    add("-g", "--demangler", metavar="COMMAND", help="demangles the names of kernels (default: c++filt)")
    add("-r", "--report", metavar="FILE", help="the report of stalls as text, too")
    add("-q", "--http", action="store_true", help="show metrics in a browser, which may follow the links of a trace, until Ctrl-C")
    add("-p", "--https", action="store_true", help="the same by https, for the links of older traces")
    add("--port", type=int, default=8000, metavar="N", help="of -q and -p (default 8000, where the links lead)")
    add("-c", "--certificate", metavar="FILE", help="of -p (default: made for this run)")
    add("-e", "--key", metavar="FILE", help="the certificate's private key")
    add("-f", "--config", action=_FromFile, metavar="FILE", help="read options from a file, too")
    if with_input:
        add("input", help="metrics of xstrace or unitrace: a file of -q, -k or --stall-sampling (.csv)")
    return parser


# ---- what is drawn ----


def names_in(text, section):
    """The names of a comma-separated list, which are metrics of the section. Raises Misuse."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise Misuse("a list of metrics is empty")
    for name in names:
        if name not in section.metrics:
            raise Misuse(f'no metric is named "{said(name)}"{nearest(name, section.metrics)}; -l lists them')
    return names


def instance_charts(options, section, instance):
    """The charts of one execution of a kernel: a list of Chart. Raises Misuse."""
    title = f"{options.title}\n({instance.kernel}) #{instance.id:.0f}"
    made = []
    for text, label in zip(options.metrics, options.ylabel, strict=True):
        made.append(Chart(title, options.xlabel, label, {name: instance[name] for name in names_in(text, section)}))
    for text in options.throughput or []:
        time = next((name for name in TIMES if name in section.metrics), None)
        if not time:
            raise Misuse(f"-b needs {TIMES[0]}, which the file does not have")
        # bytes per ns are GB/s
        rates = {name: [value / ns if ns > 0 else 0.0 for value, ns in zip(instance[name], instance[time], strict=True)]
                 for name in names_in(text, section)}  # fmt: skip
        made.append(Chart(title, options.xlabel, "Throughput(GB/s)", rates))
    return made


def stall_pages(options, stalled, dump):
    """The charts of a kernel's stalls, and with a dump the report behind them (a list of lines)."""
    reasons = [name for name in stalled.names if "Stall" in name and any(stalled[name])]
    rows = sorted((address, at) for at, address in enumerate(stalled.addresses) if any(stalled[name][at] for name in reasons))
    parts = [rows[first : first + INSTRUCTIONS] for first in range(0, len(rows), INSTRUCTIONS)]
    pages = []
    for number, part in enumerate(parts, 1):
        which = f" ({number}/{len(parts)})" if len(parts) > 1 else ""
        series = {name: [stalled[name][at] for _, at in part] for name in reasons}
        labels = [f"0x{address:08X}" for address, _ in part]
        pages.append(Chart(f"{options.title}\n({stalled.kernel}){which}", "IP[Address]", "Events", series, labels, stacked=True))
    if dump and pages:
        pages.append(report(stalled, dump.listing(stalled.kernel), options.numtopstalls))
    return pages


def chosen(options, section):
    """The instances that -k and -i ask for. Raises Misuse."""
    kernels = section.by_kernel()
    if options.kernel is not None and options.kernel not in kernels:
        raise Misuse(f'no metrics of kernel "{said(options.kernel)}"{nearest(options.kernel, kernels)}; -l lists them')
    found = []
    for name in [options.kernel] if options.kernel is not None else kernels:
        if options.kernel is None and name.startswith(NOT_A_SAMPLE):
            continue
        instances = kernels[name]
        if options.instance > len(instances) and options.kernel is not None:
            raise Misuse(f'kernel "{said(name)}" has {len(instances)} instances, not {options.instance}')
        found += instances if options.instance < 1 else instances[options.instance - 1 : options.instance]
    if len(found) > MOST_DRAWN:
        text = f"the first {MOST_DRAWN} of {len(found)} executions are drawn; -k and -i say which"
        print(f"{COMMAND}: {text}", file=sys.stderr)
    return found[:MOST_DRAWN]


def _section_of(options, sections):
    found = [section for section in sections if section.device == options.device]
    if not found:
        there = ", ".join(str(number) for number in sorted({section.device for section in sections}))
        raise Misuse(f"the file has no device {options.device}, only {there}")
    # of several groups of metrics each has a section; -m and -b say which one is meant
    wanted = {name.strip() for names in [*(options.metrics or []), *(options.throughput or [])] for name in names.split(",")}
    return max(found, key=lambda section: len(wanted & set(section.metrics)))


def check_options(options):
    """What can be said before the file is read. Raises Misuse."""
    if len(options.metrics or []) != len(options.ylabel or []):
        raise Misuse(f"each -m needs its -y: there are {len(options.metrics or [])} and {len(options.ylabel or [])}")
    if options.http and options.https:
        raise Misuse("-p and -q exclude each other")
    if bool(options.certificate) != bool(options.key):
        raise Misuse("-c and -e need each other")
    if not options.output and not (options.list or options.http or options.https):
        raise Misuse("-o FILE is missing: where to put the charts")


# ---- what is said ----


def listed(sections):
    """Devices, metrics and kernels as unitrace's script lists them: lines (str)."""
    for section in sections:
        yield f"Device {section.device}"
        yield "    Metric"
        yield from (f"        {name}" for name in section.metrics)
        yield "    Kernel" if section.has_stalls else "    Kernel, Number of Instances"
        for name, count in section.kernels().items():
            yield f'        "{name}"' if section.has_stalls else f'        "{name}", {count}'


def _list(options, sections):
    lines = [printable(line) for line in listed(sections)]
    if options.output:
        with written(options.output, "w", encoding="utf-8", errors="replace") as file:
            print(*lines, sep="\n", file=file)
    else:
        print(*lines, sep="\n")


def _draw_stalls(options, section, dump):
    kernels = section.kernels()
    if options.kernel is not None:
        bare = re.sub(r"\[[^\]]*\]$", "", options.kernel)  # stalls are those of all shapes
        name = options.kernel if options.kernel in kernels else bare
        if name not in kernels:
            raise Misuse(f'no stalls of kernel "{said(options.kernel)}"{nearest(options.kernel, kernels)}; -l lists them')
        kernels = {name: 0}
    pages, text = [], []
    for name in kernels:
        made = stall_pages(options, section.stalls[name], dump)
        pages += made
        text += [line for one in made if isinstance(one, list) for line in one]
        print(f"{'Analyzed' if made else 'No stall events for'} kernel {printable(name)}")
    if options.report and dump:
        with written(options.report, "w", encoding="utf-8", errors="replace") as file:
            print(*text, sep="\n", file=file)
        print(f"Stall report is stored in {printable(options.report)}")
    return pages


def _draw(options, section):
    dump = Dump(options.shaderdump, options.demangler) if options.shaderdump else None
    if dump and dump.missing:
        print(f"analyzeperfmetrics.py: {printable(dump.missing)}", file=sys.stderr)
    if section.has_stalls:
        return _draw_stalls(options, section, dump)
    if not options.metrics:
        raise Misuse("-m and -y are missing: which metrics to draw; -l lists them")
    pages = []
    for instance in chosen(options, section):
        pages += instance_charts(options, section, instance)
        print(f"Analyzed kernel {printable(instance.kernel)}")
    return pages


@command(COMMAND, 1)
def main(argv=None):
    """The command: 0, or 1 when options or files are not as they must be."""
    path = sections = None
    try:
        options = _parser().parse_args(argv)
        check_options(options)
        spare([options.input, *getattr(options, "read", []), options.certificate, options.key], [options.output, options.report])
        path = options.input
        sections = load(path)
        if options.list:
            _list(options, sections)
        elif options.http or options.https:
            from .metrics_view import serve

            serve(options, sections)
        else:
            pages = _draw(options, _section_of(options, sections))
            if not pages:
                raise Misuse("there is nothing to draw")
            put(pages, options.output)
            print(f"Charts are stored in {printable(os.fspath(options.output))}")
    except (Misuse, ChartsError) as error:
        say_unusable(COMMAND, path, error) if path else print(f"{COMMAND}: {printable(error)}", file=sys.stderr)
        return 1
    except MetricsError as error:
        say_unusable(COMMAND, path, error)
        return 1
    except OSError as error:
        if sections is not None and not error.filename:
            raise  # of what is written, not of the input
        say_unusable(COMMAND, error.filename or path, error)
        return 1
    return 0

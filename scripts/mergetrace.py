#!/usr/bin/env python3
"""unitrace's name for xstrace-merge: takes the options of unitrace's mergetrace.py and runs that.

It adds what is done for each trace by itself: checking, statistics, Parquet; here, or by the workers of a Dask cluster.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # until the command itself sees to it
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import json  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))
PLACES = ("../bin", "../../../bin", "../build/merge")  # installed, beside a build
PACKAGES = (HERE, os.path.join(HERE, "../share/xstrace"), os.path.join(HERE, "../python"))
FAILED = 125


def say(text):
    # names of files, and what the files say, may hold anything
    text = "".join(character if character.isprintable() else "?" for character in str(text))
    print(f"mergetrace.py: {text}".encode(errors="replace").decode(), file=sys.stderr)


def fail(text):
    say(text)
    sys.exit(FAILED)


def find_merger():
    """The path of xstrace-merge; exits where there is none."""
    for place in PLACES:
        path = os.path.normpath(os.path.join(HERE, place, "xstrace-merge"))
        if os.access(path, os.X_OK):
            return path
    return shutil.which("xstrace-merge") or fail("xstrace-merge was not found: build it (ninja -C build), or put it into PATH")


def of_ranks(directory, ranks):
    """The directories of these ranks, as unitrace's --result-dir names them."""
    found = []
    for name in sorted(os.listdir(directory)):
        match = re.match(r"rank_(\d+)\.", name)
        if match and int(match[1]) in ranks:
            found.append(os.path.join(directory, name))
    return found


def find_package():
    """Makes the Python package importable; exits where there is none."""
    place = next((p for p in PACKAGES if os.path.isfile(os.path.join(p, "xstrace/ranks.py"))), None)
    if not place:
        fail("the Python package xstrace was not found beside it, or in ../share/xstrace")
    sys.path.insert(0, place)


def arguments():
    from xstrace.cli import Parser

    class Options(Parser):
        def refuse(self, text):
            fail(text)

    parser = Options(
        description="Merges traces; more options and the report have xstrace-merge --help.",
        epilog="Example: mergetrace.py -o all.json traces/ . Exit status: 0 all is done; 1 something was left out, or not as it should be, and said; 125 nothing could be done.",
    )
    parser.add_argument("inputFiles", nargs="*", help="traces, or directories of them")
    parser.add_argument("--result-dir", help="a directory with traces")
    parser.add_argument("--ranks", type=int, nargs="+", help="only these (with --result-dir)")
    parser.add_argument(
        "-o",
        "--outputFile",
        help="the merged trace (default: unitrace.all.json; none with the three options below)",
    )
    parser.add_argument("--no-clock-sync", action="store_true", help="leave the clocks as they are")
    parser.add_argument("--check", action="store_true", help="prove that no viewer can misread them")
    parser.add_argument("--statistics", metavar="FILE", help="JSON: calls and times of each, by name")
    parser.add_argument("--parquet", metavar="DIR", help="a table of each one's events, on one timeline")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster whose workers do these three where the traces are")
    args = parser.parse_args()
    args.by_rank = args.check or args.statistics or args.parquet
    if bool(args.result_dir) == bool(args.inputFiles):
        parser.error("give traces, or --result-dir")
    if args.ranks and not args.result_dir:
        parser.error("--ranks needs --result-dir")
    if args.scheduler and not args.by_rank:
        parser.error("--scheduler needs --check, --statistics or --parquet: merging itself is done here")
    args.inputs = args.inputFiles or [args.result_dir]
    if args.ranks:
        try:
            args.inputs = of_ranks(args.result_dir, args.ranks)
        except OSError as error:
            parser.error(f"{args.result_dir}: {error.strerror}")
        if not args.inputs:
            parser.error(f"{args.result_dir}: no traces of these ranks")
    return args


# ---- each trace by itself ----


class Work:
    """What is asked for, on the traces that the pool finds. `status` is 1 as soon as something is amiss; is_done: something has come of it."""

    def __init__(self, args, pool):
        self.args = args
        self.pool = pool
        self.status = 0
        self.is_done = False
        self.told = set()
        self.paths = pool.find(args.inputs)
        self.leave_out()
        if not self.paths and self.status:
            sys.exit(FAILED)
        if not self.paths:
            fail(f"{' '.join(args.inputs)}: no traces (.json, .json.zst, .json.gz)" + (" that a worker sees" if args.scheduler else ""))

    def leave_out(self):
        """What is no file, what was named and is no trace, and the merged trace itself."""
        others = dict(ranks.no_files(self.args.inputs))
        for path, why in others.items():
            self.amiss(path, f"{why}; left out")
        for place in self.args.inputs if self.paths else ():
            above = os.path.join(os.path.abspath(place), "")
            if place not in others and not any(os.path.join(path, "").startswith(above) for path in self.paths):
                self.amiss(place, "no trace (.json, .json.zst, .json.gz)")
        output = self.args.outputFile
        for path in list(self.paths) if output and os.path.exists(output) else ():
            if os.path.exists(path) and os.path.samefile(path, output):
                self.amiss(path, "is what -o names; left out")
                self.paths.remove(path)

    def each(self, function, *more):
        """(path, result) of the traces with which it works; the others are said, and left out from now on. So is what of a trace is missing."""
        calls = [(path, *(part[path] for part in more)) for path in self.paths]
        for path, result, error in self.pool.each(function, calls):
            if not error:
                result, fault = result
                self.missing(path, *fault)
                yield path, result
                continue
            if isinstance(error, ModuleNotFoundError) and error.name == "pyarrow":
                raise workers.Unavailable(
                    "--parquet needs pyarrow" + (" on the workers" if self.args.scheduler else "") + ": pip install pyarrow"
                )
            self.amiss(path, getattr(error, "strerror", None) or str(error) or type(error).__name__)
            self.paths = [other for other in self.paths if other != path]

    def missing(self, path, text, is_loss):
        """What of a trace could not be read: once, however often it is."""
        if text and (path, text) not in self.told:
            self.told.add((path, text))
            say(f"{path}: {text}")
        self.status |= is_loss

    def amiss(self, path, text):
        self.status = 1
        say(f"{path}: {text}")

    def check(self):
        for path, (problems, notes) in self.each(ranks.check):
            self.is_done = True
            for note in notes:
                say(f"{path}: note: {note}")
            for problem in problems:
                self.amiss(path, problem)

    def statistics(self):
        found = [result for _, result in self.each(ranks.statistics)]
        if not found:
            return
        found.sort(key=lambda one: (one["rank"] is None, one["rank"] or 0, one["file"]))
        text = json.dumps({"traces": found}, indent=1) + "\n"
        if self.args.statistics == "-":
            sys.stdout.write(text)
            self.is_done = True
            return
        if os.path.lexists(self.args.statistics):
            raise workers.Unavailable(f"{self.args.statistics}: is there already")
        try:
            with running.written(self.args.statistics, "w") as file:
                file.write(text)
        except OSError as error:
            raise workers.Unavailable(f"{self.args.statistics}: {error.strerror}") from None
        self.is_done = True

    def clocks(self):
        """{path: its clock}: only the MPI calls come here, for xstrace-merge to tie the clocks together. None: it could not, and that is said."""
        clocks = dict.fromkeys(self.paths)
        if self.args.no_clock_sync or len(self.paths) < 2:
            return clocks
        from xstrace.temporary import Directory

        with Directory("mergetrace.") as place:
            names = {}
            for number, (path, calls) in enumerate(self.each(ranks.mpi_calls)):
                name = os.path.join(place, f"{number}.json.gz")
                names[name] = path
                with open(name, "wb") as file:
                    file.write(calls)
            merged = os.path.join(place, "all.json.zst" if shutil.which("zstd") else "all.json")
            if not names:
                return clocks
            merger = subprocess.run([find_merger(), "-o", merged, "--", *names], capture_output=True, text=True)
            if merger.returncode:
                for line in merger.stderr.splitlines():
                    name = next((name for name in names if name in line), None)
                    self.amiss("xstrace-merge", line.removeprefix("xstrace-merge: ").replace(name or "", names.get(name, "")))
                self.amiss("--parquet", "the clocks cannot be brought together; --no-clock-sync leaves them as they are")
                return None
            with trace.open_trace(merged) as all_calls:
                for _ in all_calls:
                    pass
                for one in (all_calls.other or {}).get("inputs", ()):
                    clocks[names[one["file"]]] = one.get("clock")
        return clocks

    def parquet(self):
        clocks = self.clocks()
        if clocks is None:
            return
        targets, taken = {}, set()
        for path in self.paths:
            stem = re.sub(r"\.json(\.zst|\.gz)?$", "", os.path.basename(path))
            name = next(n for i in range(1, len(self.paths) + 2) if (n := stem + (f"-{i}" if i > 1 else "")) not in taken)
            taken.add(name)
            targets[path] = os.path.join(os.path.abspath(self.args.parquet), name + ".parquet")
        for path, rows in self.each(ranks.to_parquet, targets, clocks):
            say(f"{path}: {rows} events in {targets[path]}")
            self.is_done = True


def by_rank(args):
    """The exit status: FAILED where nothing has come of it. Exits where no more can come."""
    work = None
    try:
        with workers.workers(args.scheduler) as pool:
            work = Work(args, pool)
            if args.check:
                work.check()
            if args.statistics:
                work.statistics()
            if args.parquet:
                work.parquet()
            return work.status if work.is_done else FAILED
    except workers.Unavailable as error:
        say(error)
        sys.exit(1 if work and work.is_done else FAILED)


def merge(command):
    """The exit status of xstrace-merge, which is not left behind."""
    with subprocess.Popen(command) as child:
        try:
            return child.wait()
        except BaseException:
            child.terminate()
            raise


def run(_):
    """The exit status; where xstrace-merge does all the work, this process becomes it."""
    global ranks, trace, workers
    args = arguments()
    output = args.outputFile or ("" if args.by_rank else "unitrace.all.json")
    merger = find_merger() if output or args.parquet else None
    status = 0
    if args.by_rank:
        from xstrace import ranks, trace, workers

        status = by_rank(args)
    if not output:
        return status
    more = ["--no-clock-sync"] if args.no_clock_sync else []
    command = [merger, "-o", output, *more, "--", *args.inputs]
    sys.stdout.flush()
    if not args.by_rank:
        os.execv(merger, command)
    merged = merge(command)
    if status == FAILED:
        return 1 if merged in (0, 1) else FAILED
    return max(status, int(merged != 0))


def main():
    global running
    find_package()
    from xstrace import running

    return running.command("mergetrace.py", FAILED)(run)()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""unitrace's name for xstrace-merge: takes the options of unitrace's mergetrace.py and runs that."""

import argparse
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
PLACES = ("../bin", "../../../bin", "../build/merge")  # installed, beside a build


def find_merger():
    """The path of xstrace-merge, or None."""
    for place in PLACES:
        path = os.path.normpath(os.path.join(HERE, place, "xstrace-merge"))
        if os.access(path, os.X_OK):
            return path
    return shutil.which("xstrace-merge")


def of_ranks(directory, ranks):
    """The directories of these ranks, as unitrace's --result-dir names them."""
    found = []
    for name in sorted(os.listdir(directory)):
        match = re.match(r"rank_(\d+)\.", name)
        if match and int(match[1]) in ranks:
            found.append(os.path.join(directory, name))
    return found


def main():
    parser = argparse.ArgumentParser(
        description="Merges traces; more options and the report have xstrace-merge --help."
    )
    parser.add_argument("inputFiles", nargs="*", help="traces, or directories of them")
    parser.add_argument("--result-dir", help="a directory with traces")
    parser.add_argument("--ranks", type=int, nargs="+", help="only these (with --result-dir)")
    parser.add_argument(
        "-o", "--outputFile", default="unitrace.all.json", help="(default: %(default)s)"
    )
    parser.add_argument("--no-clock-sync", action="store_true", help="leave the clocks as they are")
    args = parser.parse_args()
    if bool(args.result_dir) == bool(args.inputFiles):
        parser.error("give traces, or --result-dir")
    if args.ranks and not args.result_dir:
        parser.error("--ranks needs --result-dir")
    inputs = args.inputFiles or [args.result_dir]
    if args.ranks:
        try:
            inputs = of_ranks(args.result_dir, args.ranks)
        except OSError as error:
            parser.error(f"{args.result_dir}: {error.strerror}")
        if not inputs:
            parser.error(f"{args.result_dir}: no traces of these ranks")
    merger = find_merger()
    if not merger:
        sys.exit(
            "mergetrace.py: xstrace-merge was not found: build it (ninja -C build), or put it into PATH"
        )
    more = ["--no-clock-sync"] if args.no_clock_sync else []
    os.execv(merger, [merger, "-o", args.outputFile, *more, "--", *inputs])


if __name__ == "__main__":
    main()

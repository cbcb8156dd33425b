#!/usr/bin/env python3
"""Writes the MPI wrappers from mpi.toml, which lists every function and its arguments.

usage: generate_mpi.py mpi.toml OUT_DIR

Written are mpi_wrap.c (for libxstrace-mpi.so), mpi_functions.h (function numbers), mpi_names.c (number to name, for the drain process) and
mpi.map (what is exported). What a wrapper records follows from the names of the arguments.
"""
import sys
import tomllib
from pathlib import Path

NOTE = "/* Made by interpose/generate_mpi.py from mpi.toml. */\n"
COMMUNICATORS = ("comm", "comm_old", "local_comm", "intercomm")


class Function:
    """One function and its arguments, by the names that the standard gives them."""

    def __init__(self, section, name, text):
        marks, words = [], text.split()
        while words and words[0] in "+?":
            marks.append(words.pop(0))
        self.section, self.name = section, name
        self.large, self.optional = "+" in marks, "?" in marks
        self.texts = sum(w.startswith("$") for w in words)  # each has a hidden length in Fortran
        self.arguments = [w.removeprefix("$") for w in words]

    def has(self, *names):
        return all(name in self.arguments for name in names)

    def first(self, names):
        return next((name for name in names if name in self.arguments), None)

    @property
    def comm(self):
        return self.first(COMMUNICATORS)

    @property
    def collective(self):
        return self.section == "collective" and self.comm is not None


def read_table(path):
    table = tomllib.loads(path.read_text())
    return [Function(s, n, text) for s, functions in table.items() for n, text in functions.items()]


def pieces(f):
    """[(word, C expression)]: what is recorded of the function's call, in the order of enum xs_mpi_word."""
    found = {}
    tag = f.first(("tag", "sendtag")) or "-1"
    if f.comm:
        found["COMM"] = "comm->id"
    if f.has("dest"):
        found["PEER"] = f"xs_mpi_peer(comm, dest, {tag})"
    elif f.has("source", "comm"):
        found["PEER"] = f"xs_mpi_peer(comm, source, {tag})"
    if f.section in ("message", "collective", "file"):
        for count, kind in (("count", "datatype"), ("sendcount", "sendtype"), ("recvcount", "datatype")):
            if f.has(count, kind):
                found["COUNT"] = f"(uint64_t){count}"
                found["BYTES"] = f"(uint64_t)({count} * xs_mpi_size({kind}))"
                break
    if f.collective:
        root = "root" if f.has("root") else None
        found["ROOT"] = f"xs_mpi_root(comm, root, number)" if root else "xs_mpi_pair(XS_MPI_NOTHING, (int32_t)number)"
    return found


HANDLES = {"datatype", "sendtype", "recvtype"}
COUNTS = {"count", "sendcount", "recvcount"}
INTS = {"dest", "source", "tag", "sendtag", "recvtag", "root"}


def used(f, found):
    """The arguments that the recorded expressions name."""
    import re
    words = set(re.findall(r"\w+", " ".join(found.values())))
    return [a for a in f.arguments if a in words]


class Shapes:
    """The functions that write records: one for all wrappers that record the same."""

    def __init__(self):
        self.code, self.known = [], {}

    def of(self, f):
        found = pieces(f)
        arguments = [a for a in used(f, found) if a != f.comm]
        key = (tuple(found.items()), tuple(arguments), f.comm is not None)
        if key not in self.known:
            name = f"record_{len(self.known)}"
            self.known[key] = name
            parameters = ["const struct xs_mpi_call *call"]
            if f.comm:
                parameters.append("const struct xs_mpi_comm *comm")
            for a in arguments:
                parameters.append(f"{'uint64_t' if a in HANDLES else 'int64_t' if a in COUNTS else 'int32_t'} {a}")
            if f.collective:
                parameters.append("uint32_t number")
            lines = [f"/* {' '.join(found) or 'no more than the call'} */",
                     f"static __attribute__((noinline)) void {name}({', '.join(parameters)})", "{"]
            if found:
                lines += ["\tconst uint64_t word[] = {"] + [f"\t\t{e}," for e in found.values()] + ["\t};\n"]
                mask = " | ".join(f"1u << XS_MPI_{w}" for w in found)
                lines += [f"\txs_mpi_write(call, {mask}, word, {len(found)});"]
            else:
                lines += ["\txs_mpi_write(call, 0, NULL, 0);"]
            self.code += lines + ["}\n"]
        return self.known[key], arguments


def plain(f, name, shapes, large):
    """The wrapper of a C function."""
    parameters = ", ".join(f"xs_word {a}" for a in f.arguments) or "void"
    passed = ", ".join(f.arguments)
    types = ", ".join("xs_word" for a in f.arguments) or "void"
    record, arguments = shapes.of(f)
    number = f"FN_{name}"
    give = ["&call"]
    lines = [f"XS_EXPORT int {name}({parameters})", "{", f"\tstatic int (*real)({types});", "\tstruct xs_mpi_call call;"]
    if f.comm:
        lines.append(f"\tstruct xs_mpi_comm *found;")
    if f.collective:
        lines.append("\tuint32_t number;")
    lines += ["", "\tif (__builtin_expect(!real, 0))",
              f'\t\t*(void **)&real = xs_mpi_find("{name}", __builtin_return_address(0));']
    if f.collective:
        lines += [f"\tfound = xs_mpi_comm(xs_mpi_handle({f.comm}));", "\tnumber = xs_mpi_depth ? 0 : xs_mpi_collective(found);"]
    lines += [f"\tif (!xs_mpi_enter(&call, {number}))", f"\t\treturn real({passed});", f"\txs_mpi_leave(&call, real({passed}));"]
    if f.comm:
        if not f.collective:
            lines.append(f"\tfound = xs_mpi_comm(xs_mpi_handle({f.comm}));")
        give.append("found")
    for a in arguments:
        give.append(f"xs_mpi_handle({a})" if a in HANDLES else f"{a}" if a in COUNTS and large else f"(int32_t){a}")
    if f.collective:
        give.append("number")
    lines += [f"\t{record}({', '.join(give)});", "\treturn call.result;", "}\n"]
    return "\n".join(lines)


def main():
    functions, out = read_table(Path(sys.argv[1])), Path(sys.argv[2])
    names = []
    for f in functions:
        names.append(f"MPI_{f.name}")
        if f.large:
            names.append(f"MPI_{f.name}_c")
    names.sort()
    header = [NOTE, "enum {"] + [f"\tFN_{n}," for n in names] + ["\tFN_mpi_count", "};", ""]
    (out / "mpi_functions.h").write_text("\n".join(header))
    code = [NOTE, "#include <stdint.h>", "extern const char *const xs_mpi_names[];", "extern const uint32_t xs_mpi_count;",
            "const char *const xs_mpi_names[] = {"]
    code += [f'\t"{n}",' for n in names] + ["};", f"const uint32_t xs_mpi_count = {len(names)};", ""]
    (out / "mpi_names.c").write_text("\n".join(code))
    shapes, wrappers = Shapes(), []
    for f in functions:
        wrappers.append(plain(f, f"MPI_{f.name}", shapes, False))
        if f.large:
            wrappers.append(plain(f, f"MPI_{f.name}_c", shapes, True))
    code = [NOTE, '#include "mpi_wrap.h"\n', '#pragma GCC diagnostic ignored "-Wmissing-prototypes"\n'] + shapes.code + wrappers
    (out / "mpi_wrap.c").write_text("\n".join(code))


if __name__ == "__main__":
    main()

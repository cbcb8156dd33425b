"""The table of MPI's functions (interpose/mpi.toml) against every mpi.h there is, and all wrappers called, between a program and a library that know nothing of it."""

import collections
import re
import subprocess
import sys

import pytest

from conftest import ROOT
from mpi_headers import FakeLibrary, fortran_names, headers, lacks
from ranks import MPI

sys.path.insert(0, str(ROOT / "interpose"))

from generate_mpi import FORTRAN, read_table  # noqa: E402

# what is left out on purpose (mpi.toml)
UNTRACED = {"MPI_Wtime", "MPI_Wtick", "MPI_Pcontrol", "MPI_Aint_add", "MPI_Aint_diff"}
CONVERSIONS = ("_c2f", "_f2c", "_f082c", "_c2f08", "_f082f", "_f2f08", "_fromint", "_toint")
# how a wrapper reads an argument (C_INT(x), in Fortran F_INT(x)): the types that may be read so
READ = {
    "INT": {"int"},
    "LONG": {"MPI_Count", "MPI_Offset"},
    "TYPE": {"MPI_Datatype"},
    "COMM": {"MPI_Comm"},
    "WIN": {"MPI_Win"},
    "FILE": {"MPI_File"},
    "REQUEST": {"MPI_Request"},
    "SESSION": {"MPI_Session *"},
    "OUT_INT": {"int *"},
    "OUT_COMM": {"MPI_Comm *"},
    "OUT_WIN": {"MPI_Win *"},
    "OUT_FILE": {"MPI_File *"},
    "OUT_REQUEST": {"MPI_Request *"},
    "OUT_MESSAGE": {"MPI_Message *"},
}
ARRAYS = {
    "array_of_requests": ("MPI_Request *",) * 2,
    "array_of_statuses": ("MPI_Status *",) * 2,
    "array_of_indices": ("int *",) * 2,
    **dict.fromkeys(("sendcounts", "recvcounts"), ("int *", "MPI_Count *")),
    **dict.fromkeys(("sendtypes", "recvtypes"), ("MPI_Datatype *",) * 2),
}
# what some headers call the arguments that mean something to a wrapper
OTHER_NAMES = {
    "indx": {"index"},
    "comm_old": {"old_comm"},
    "newcomm": {"new_comm"},
    "newintracomm": {"newintercomm"},
    "comm_dist_graph": {"newcomm"},
    "stringtag": {"tag"},
    "datatype": {"type", "mtype"},
    "buf": {"ibuf"},
}
MISTAKES = {("MPI_Precv_init", "source"): "dest", ("MPI_Pready", "partition"): "partitions"}


def table():
    """{function: its row in the form with that name}"""
    rows = {f"MPI_{f.name}": f for f in read_table(ROOT / "interpose/mpi.toml")}
    return rows | {f"{name}_c": f.in_form(True) for name, f in rows.items() if f.large}


TABLE = table()


@pytest.fixture(params=headers().values(), ids=lambda header: header.name)
def header(request):
    if reason := lacks(request.param):
        pytest.skip(reason)
    return request.param


def traced(header):
    """The header's functions that are to be traced."""
    return {
        name: arguments
        for name, arguments in header.functions.items()
        if name not in UNTRACED and not name.endswith(CONVERSIONS)
    }


def test_every_function_has_a_row(header):
    found = traced(header)
    assert len(found) > 340
    assert sorted(set(found) - set(TABLE)) == []


def test_no_row_is_of_nothing():
    """With all of them installed, each row is in one; MPICH 4 alone has all but those of the standards after it."""
    known = [set(traced(header)) for header in headers().values() if not lacks(header)]
    if len(known) < len(headers()):
        pytest.skip("not every MPI is here; scripts/setup --clients")
    assert sorted(set(TABLE) - set().union(*known)) == []


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    """{wrapper: {(how, argument)}}: what the generated wrappers read of their arguments themselves."""
    out = tmp_path_factory.mktemp("generated")
    subprocess.run([sys.executable, ROOT / "interpose/generate_mpi.py", ROOT / "interpose/mpi.toml", out], check=True)
    found = {}
    for file in "mpi_wrap.c", "mpi_fortran.c":
        for symbol, body in re.findall(r"^XS_EXPORT \w+ (\w+)\(.*?\)\n\{\n(.*?)^\}", (out / file).read_text(), re.M | re.S):
            found[symbol] = set(re.findall(r"\b[CF]_([A-Z_]+)\((\w+)\)", body))
    return found


def test_number_kind_and_width(header, reads):
    wrong = []
    for name, arguments in traced(header).items():
        row = TABLE[name]
        if len(row.arguments) != len(arguments):
            wrong.append((name, row.arguments, [a.text for a in arguments]))
            continue
        of = dict(zip(row.arguments, arguments))
        symbols = [name] + [symbol for symbol, function in in_fortran([name]) if function == name]
        # in Fortran all are addresses: what C passes by value is read as what comes back
        good = {how: types | {t.removesuffix(" *") for t in types} for how, types in READ.items()}
        for symbol in symbols:
            types = READ if symbol == name else good
            wrong += [(symbol, how, of[word].text) for how, word in reads[symbol] if of[word].type not in types[how]]
        wrong += [(name, of[word].text) for word in of if word in ARRAYS and of[word].type != ARRAYS[word][row.wide]]
        texts = [word for word in of if "char" in of[word].type.split() and not ("argc" in of and word == "argv")]
        if texts != [word for word in row.texts if not ("argc" in of and word == "argv")]:
            wrong.append((name, row.texts, texts))
    assert wrong == []


def test_names(header):
    wrong = []
    for name, arguments in traced(header).items():
        for word, argument in zip(TABLE[name].arguments, arguments):
            if TABLE[name].kind(word) is None and word not in ARRAYS or argument.name == word:
                continue
            if argument.name not in OTHER_NAMES.get(word, ()) and MISTAKES.get((name, word)) != argument.name:
                wrong.append((name, word, argument.name))
    assert wrong == []


def test_fortran_names():
    """What an installed library offers to Fortran has a wrapper, by whatever name."""
    ours = {f"mpi_{f.name.lower()}{suffix}" for f in TABLE.values() if not f.wide for suffix, _, _ in f.in_fortran()}
    wanted = {name.lower() + suffix for name in TABLE for suffix in FORTRAN}
    libraries = fortran_names()
    if not libraries:
        pytest.skip("no MPI library for Fortran")
    for path, names in libraries.items():
        assert sorted(names & wanted - ours) == [], path
    assert sum(len(names & ours) for names in libraries.values()) > 900


# ---- all of them called ----


def in_fortran(functions):
    """[(symbol, C function)] of all forms of these functions."""
    found = []
    for name in functions:
        row = TABLE[name]
        for suffix, _, wide in row.in_fortran():
            if wide == row.wide:
                found.append((f"mpi_{row.name.lower()}{suffix}", name))
    return found


def check_values(name, arguments, slices):
    """What the calls that succeeded were given stands in their records."""
    words = [a.name for a in arguments]
    if "status" in words:
        return  # which tells more
    for one in slices:
        if "result" in one.args:
            continue
        for i, argument in enumerate(arguments):
            value = 3 + i if argument.kind == "int" else (1 << 33) + 3 + i
            if argument.name == "count" and "datatype" in words:
                value *= 3 + words.index("partitions") if "partitions" in words else 1
            if argument.kind in ("int", "long") and argument.name in ("count", "tag", "root", "offset") and argument.name in one.args:
                assert one.args[argument.name] == value, (name, argument.name, one.args)


@pytest.mark.long(keep=1)
def test_every_wrapper(xstrace, tmp_path, header):
    """Each argument arrives as it was given, each result comes back; of calls that fail nothing is looked at: not where their pointers lead, not what their handles are."""
    fake = FakeLibrary(header, tmp_path, in_fortran(traced(header)))
    app = fake.build()
    bare = xstrace.bare(app)
    assert bare.status == 0, bare.out
    run = xstrace(MPI, app)
    assert run.status == 0 and run.out == bare.out and run.err == bare.err, run.out
    calls = collections.defaultdict(list)
    for one in run.trace.calls:
        calls[one.name].append(one)
    rounds = collections.Counter({name: 3 for name in traced(header)})
    for _, name in fake.fortran:
        rounds[name] += 2
    assert {name: len(found) for name, found in calls.items()} == rounds
    for name, found in calls.items():
        assert sum("result" not in one.args for one in found) * 2 <= len(found) + 1
        check_values(name, header.functions[name], found)
    for name in "MPI_Send", "MPI_Bcast", "MPI_File_write_at":
        assert all({"count", "bytes"} <= set(one.args) for one in calls[name] if "result" not in one.args)
    # neither was made by a call that was seen
    for name, key in ("MPI_Win_fence", "win"), ("MPI_File_sync", "file"):
        (good, *_) = [one for one in calls[name] if "result" not in one.args]
        assert len(good.args[key]) == 16

"""--format perfetto: it holds what the JSON holds (docs/TRACE_FORMAT.md)."""

import collections
import math
import re
import subprocess

import pytest

from conftest import BUILD, Trace, check_trace, compile_c
from cuda_log import HAVE_SOFTCUDA, SoftCUDA
from ranks import MPI, Ranks, mpi_app, needs_mpi  # noqa: F401

PERFETTO = "--format perfetto"
ALL = "--chrome-call-logging --chrome-kernel-logging --chrome-itt-logging"
needs_softcuda = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no software CUDA")


def shape(trace, but=()):
    """What of a trace does not differ between two runs of a program; `but`: names of calls that are made until something happens."""
    slices = collections.Counter((s.name, s.cat, tuple(sorted(s.args)), s.unfinished) for s in trace.slices if s.name not in but)
    others = collections.Counter((e["ph"], e.get("name"), e.get("cat"), e.get("bp")) for e in trace.events if e["ph"] not in "XM")
    # threads of the runtime's that had something to do differ in number
    names = sorted({re.sub(r"0x\w+|\b\d{3,}\b", "N", e["args"]["name"]) for e in trace.events if e["ph"] == "M" and "name" in e["args"]})
    return slices, others, names


def enclosing(trace):
    """How many slices lie in how many others of their tracks."""
    depths = collections.Counter()
    for slices in trace.by_thread(trace.slices).values():
        ends = []
        # on some machines the clock has steps of 10 ns: then one may have the times of the one in it
        for one in sorted(slices, key=lambda one: (one.start, -one.end, one.name)):
            while ends and ends[-1] <= one.start:
                ends.pop()
            depths[len(ends), one.name] += 1
            ends.append(one.end)
    return depths


@pytest.mark.parametrize(
    "options, app, args",
    [
        (ALL, "cl_matrix", []),
        (f"{ALL} -c --output calls.txt", "cl_matrix", []),
        ("--chrome-itt-logging", "itt_tasks", [2000, 2, "--depth", 5]),
        ("--chrome-itt-logging", "itt_api", ["tasks"]),
        ("--chrome-itt-logging", "itt_names", []),
        ("--chrome-itt-logging", "itt_threads", []),
        ("--chrome-itt-logging --compress zstd", "itt_end", ["exit"]),
    ],
)
def test_the_same_as_json(xstrace, options, app, args):
    # by PoCL as many threads as have the time work on a kernel, and each of them may tell of its end
    runs = [xstrace(f"{options} {more}", app, args, env={"POCL_MAX_PTHREAD_COUNT": "1"}) for more in ("", PERFETTO)]
    assert runs[1].trace_files[0].name.endswith((".pftrace", ".pftrace.zst"))
    assert runs[0].status == runs[1].status
    plain, packets = (sorted(run.traces, key=lambda trace: len(trace.slices)) for run in runs)
    for one, other in zip(plain, packets, strict=True):
        assert shape(other) == shape(one)
        assert other.other.keys() - {"threads_omitted"} == one.other.keys() and other.metadata.keys() == one.metadata.keys()
        for key in ("events", "lost", "end", "status"):
            assert other.other[key] == one.other[key]
        assert enclosing(other) == enclosing(one)
        assert len(other.other["threads"]) + other.other.get("threads_omitted", 0) == len(one.other["threads"])


@needs_softcuda
def test_cuda(xstrace, tmp_path):
    runs = [xstrace(f"{ALL} {more}", "cuda_streams", env=SoftCUDA(tmp_path).env) for more in ("", PERFETTO)]
    flush = ["flush of CUPTI's buffers"]
    assert shape(runs[1].trace, but=flush) == shape(runs[0].trace, but=flush) and runs[1].trace.device


@needs_mpi
def test_ranks(xstrace, mpi_app):  # noqa: F811
    """Each has a file; the arguments of calls are numbers and texts as in JSON."""
    app = mpi_app("mpi_messages")
    plain = Ranks(xstrace, MPI, app, [xstrace.cwd])
    known = set(xstrace.cwd.iterdir())
    run = xstrace.bare("mpiexec.mpich", ["-n", "2", BUILD / "launcher/xstrace", MPI, PERFETTO.split()[0], "perfetto", app, xstrace.cwd])
    assert run.status == 0
    found = [Trace(path) for path in set(xstrace.cwd.iterdir()) - known if path.suffix == ".pftrace"]
    assert len(found) == 2
    for trace in found:
        one = plain.traces[trace.metadata["rank"]]
        assert check_trace(trace.path, strict=True) == []
        assert shape(trace, but=["MPI_Test"])[:2] == shape(one, but=["MPI_Test"])[:2]
        sizes = [sorted(s.args["bytes"] for s in t.slices if "bytes" in s.args and s.name != "MPI_Test") for t in (trace, one)]
        assert sizes[0] == sizes[1]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("depth", [1, 2, 8])
def test_a_task_takes_24_bytes(xstrace, depth):
    """With names of any length, which are told once."""
    count = 40_000
    run = xstrace(f"--chrome-itt-logging {PERFETTO}", "itt_tasks", [count, 1, "--depth", depth])
    run.check_expected()
    assert run.trace_files[0].stat().st_size <= 24 * count + 4096


NUMBERS = r"""
#include <ittnotify.h>
#include <stdint.h>
#include <string.h>

int main(void)
{
	__itt_domain *domain = __itt_domain_create("d");
	__itt_string_handle *name = __itt_string_handle_create("t"), *key = __itt_string_handle_create("k");
	__itt_counter counter = __itt_counter_create_typed("c", "d", __itt_metadata_s64);
	uint64_t more[] = { 11918176334818451679u, UINT64_MAX, 1ull << 63, INT64_MAX };
	int64_t less[] = { INT64_MIN, INT64_MIN + 1, -1 }, whole[] = { 9007199254740993, INT64_MIN, INT64_MAX };
	float wholes[] = { 72260336, 16777216, 0.1f };
	double zeros[] = { -0.0, 0.0 };
	char longest[300];

	__itt_task_begin(domain, __itt_null, __itt_null, name);
	__itt_metadata_add(domain, __itt_null, key, __itt_metadata_u64, 4, more);
	__itt_metadata_add(domain, __itt_null, key, __itt_metadata_s64, 3, less);
	__itt_metadata_add(domain, __itt_null, __itt_string_handle_create("zeros"), __itt_metadata_double, 2, zeros);
	__itt_metadata_add(domain, __itt_null, __itt_string_handle_create("wholes"), __itt_metadata_float, 3, wholes);
	for (int i = 0; i < 3; i++)
		__itt_counter_set_value(counter, &whole[i]);
	__itt_task_end(domain);
	__itt_task_begin(domain, __itt_null, __itt_null, name);
	__itt_formatted_metadata_add(domain, __itt_string_handle_create("%02000d"), 7);
	__itt_task_end(domain);
	memset(longest, 'k', 299);
	longest[299] = 0;
	__itt_task_begin(domain, __itt_null, __itt_null, name);
	__itt_metadata_add(domain, __itt_null, __itt_string_handle_create(longest), __itt_metadata_s64, 1, less);
	__itt_task_end(domain);
	return 0;
}
"""


def test_whole_numbers_are_exact(xstrace):
    """Of 64 bits, with and without sign, and a zero's sign, also in what is merged. A key or text that is cut says so."""
    app = compile_c(xstrace.home / "numbers", NUMBERS)
    run = xstrace("--chrome-itt-logging", app)
    merged = xstrace.cwd / "merged.pftrace"
    subprocess.run([BUILD / "merge/xstrace-merge", "-o", merged, *run.trace_files], cwd=xstrace.cwd, check=True, capture_output=True)
    run = xstrace(f"--chrome-itt-logging {PERFETTO}", app)
    for trace in (run.trace, Trace(merged)):
        first, formatted, second = (s for s in trace.slices if s.name == "d::t")
        assert first.args["k"] == [11918176334818451679, 2**64 - 1, 2**63, 2**63 - 1, -(2**63), 1 - 2**63, -1]
        assert [math.copysign(1, zero) for zero in first.args["zeros"]] == [-1, 1]
        assert first.args["wholes"] == [72260336, 16777216, 0.1]
        assert formatted.args["cut"] is True and "0" * 1900 in formatted.args["metadata"][0]
        assert second.args["cut"] is True and "k" * 256 in second.args
        values = [e["args"]["value"] for e in trace.events if e["ph"] == "C" and e["name"].endswith("c")]
        assert values == [9007199254740993, -(2**63), 2**63 - 1]
    asked = "select value from args where key = 'k'"
    query = [BUILD.parent / "scripts/xstrace-query", "--no-cache", "--format", "csv", merged, asked]
    rows = subprocess.run(query, capture_output=True, text=True)
    assert "needs DuckDB" in rows.stderr or str(2**64 - 1) in rows.stdout, rows


def test_one_line_where_it_cannot_be_meant(xstrace):
    """Traces on demand have Kineto's format; the merger reads JSON."""
    run = xstrace.bare(BUILD / "launcher/xstrace", [*PERFETTO.split(), "--on-demand", "true"])
    assert run.status == 125 and len(run.said) == 1 and "Kineto" in run.said[0]
    run = xstrace(f"--chrome-itt-logging {PERFETTO}", "itt_tasks", [100, 1])
    merged = subprocess.run([BUILD / "merge/xstrace-merge", "-o", "all.json", *run.trace_files], cwd=xstrace.cwd, capture_output=True, text=True)
    assert merged.returncode == 125 and "without --format perfetto" in merged.stderr


def test_damage_is_told(xstrace):
    """A cut file is readable up to the cut; what is no packet is no trace."""
    run = xstrace(f"--chrome-itt-logging {PERFETTO}", "itt_tasks", [100, 1])
    whole = run.trace_files[0].read_bytes()
    cut = xstrace.cwd / "cut.pftrace"
    for length in (len(whole) - 1, len(whole) // 2):
        cut.write_bytes(whole[:length])
        checked = subprocess.run([BUILD.parent / "scripts/xstrace-check", cut], capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0 and "the file was cut" in checked.stdout and "events, ok" in checked.stdout
    spoilt = bytearray(whole)
    for at in range(40, len(spoilt), 97):
        spoilt[at] ^= 0x55
    cut.write_bytes(spoilt)
    checked = subprocess.run([BUILD.parent / "scripts/xstrace-check", cut], capture_output=True, text=True, timeout=60)
    assert checked.returncode != 0 and "Traceback" not in checked.stderr

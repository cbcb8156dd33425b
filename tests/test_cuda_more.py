"""What the trace of a CUDA program shows beside its work: compilation, pools, numbers of others, stacks, all of NVTX."""

import collections
import json
import re

import pytest
from conftest import BUILD, compile_c
from cuda_log import HAVE_SOFTCUDA, LIBRARIES, SoftCUDA

pytestmark = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI")

KERNELS = "--chrome-kernel-logging"
NVTX = "--chrome-itt-logging"


def events(run):
    return json.loads(run.trace_files[0].read_text())["traceEvents"]


# ---- records of CUPTI's ----


def test_compilation_at_run_time(xstrace, tmp_path):
    """A row of its own, within the call that loads the module."""
    cuda = SoftCUDA(tmp_path, DEVICES=2)
    run = xstrace(KERNELS, "cuda_driver", env=cuda.env)
    rows = run.trace.names("thread_name")
    compiled = [one for one in run.trace.host if one.name == "PTX to CUBIN"]
    loads = [one for one in run.trace.calls if one.name == "cuModuleLoadData"]
    assert len(compiled) == len(loads) == 4
    # calls have the counter's time, which may differ by 100 ns from one processor to the other; CUPTI has the kernel's
    apart = run.trace.other["clock_error_ns"] + 200
    for one, load in zip(compiled, loads, strict=True):
        assert rows[one.track] == "CUDA just-in-time compilation"
        assert load.start - apart <= one.start and one.end <= load.end + apart


def test_memory_pools(xstrace, tmp_path):
    cuda = SoftCUDA(tmp_path, DEVICES=2)
    run = xstrace(KERNELS, "cuda_managed", env=cuda.env)
    values = [e["args"]["value"] for e in events(run) if e.get("name") == "CUDA memory pools"]
    assert values[0] == 0 and max(values) == 4096 and len(values) >= 3


def test_managed(xstrace, tmp_path):
    """CUPTI tells of managed memory when it has been configured for each device."""
    cuda = SoftCUDA(tmp_path, DEVICES=2)
    run = xstrace(KERNELS, "cuda_managed", env=cuda.env)
    moves = [e for e in events(run) if e.get("name", "").startswith("migration ")]
    assert len(moves) == int(re.search(r"expected: (\d+) migrations", run.out)[1]) > 0
    assert all(e["args"]["bytes"][0] > 0 for e in moves)
    assert any(e.get("name") == "GPU page faults" for e in events(run))


def test_numbers_of_others(xstrace, tmp_path):
    """What the program pushed as CUPTI's external correlation id stands at the kernel."""
    cuda = SoftCUDA(tmp_path, 12, CUPTI_VERSION=18)
    run = xstrace(KERNELS, "cuda_hostile", ["external", 5], env=cuda.env)
    assert run.status == 0, run.err
    found = sorted(one.args["external_id"] for one in run.trace.device if "external_id" in one.args)
    assert found == [1000, 1001, 1002, 1003, 1004]
    assert len([one for one in run.trace.device if "registers" in one.args]) == 6


def test_call_stacks(xstrace, tmp_path):
    """The program's function that launches stands in the stack of the call."""
    run = xstrace("--chrome-call-logging --call-stacks", "cuda_streams", env=SoftCUDA(tmp_path).env)
    assert run.status == 0
    (folded,) = run.cwd.glob("*.folded")
    lines = [line for line in folded.read_text().splitlines() if "cudaLaunchKernel" in line]
    assert lines and any("one_thread;" in line and "cuda_app_launch;" in line for line in lines)


# ---- NVTX ----


def test_nvtx_has_all_that_was_said(xstrace, tmp_path):
    """Domains, categories, payloads, registered strings, wide texts, ranges from thread to thread, marks."""
    run = xstrace(NVTX, "cuda_nvtx", [3], env=SoftCUDA(tmp_path).env)
    assert run.status == 0
    names = collections.Counter(task.name for task in run.trace.tasks)
    assert names == {
        "NVTX::across": 1,
        "NVTX::after": 1,
        "NVTX::before": 1,
        "NVTX::outer": 3,
        "NVTX::payload": 3,
        "NVTX::wide": 1,
        "my domain::registered": 1,
        "my domain::step": 3,
    }
    for task in run.trace.tasks:
        if task.name == "NVTX::payload":
            assert task.args == {"payload": [2.5], "category": ["seven"]}
    marks = collections.Counter(e["name"] for e in events(run) if e["ph"] == "i")
    assert marks == {"NVTX::mark": 3, "my domain::step": 3}
    assert "ender" in run.trace.names("thread_name").values()


def test_nvtx_2(xstrace, tmp_path):
    """By the library of version 2, which looks for a tool itself."""
    cuda = SoftCUDA(tmp_path)
    run = xstrace(NVTX, "cuda_nvtx2", [3], env=cuda.env)
    assert run.status == 0
    names = collections.Counter(task.name for task in run.trace.tasks)
    assert names["NVTX::outer"] == names["my domain::step"] == 3


def device_rows(run):
    """Names of devices' processes and of the tracks in them; the last name of each counts."""
    processes, rows = run.trace.names("process_name"), run.trace.names("thread_name")
    return {name for name in processes.values() if name.startswith("DEVICE<")}, {
        name.split(" ", 2)[2] for name in rows.values() if re.match(r"Thread \d+ CUDA", name)
    }


@pytest.mark.parametrize("program", ["cuda_nvtx", "cuda_nvtx2"])
@pytest.mark.parametrize("options", [KERNELS, f"{KERNELS} {NVTX}"])
def test_names_of_streams_and_devices(xstrace, tmp_path, options, program):
    """What NVTX calls them is shown at their tracks, with NVTX's ranges and without."""
    run = xstrace(options, program, [3], env=SoftCUDA(tmp_path).env)
    assert run.status == 0, run.err
    devices, rows = device_rows(run)
    if program == "cuda_nvtx2":  # it gives no names
        assert not any("(my" in name for name in devices | rows)
        return
    assert len(devices) == 1 and next(iter(devices)).endswith(" #0 (my device)")
    assert {re.sub(r"\d+", "N", name) for name in rows if "Stream" in name} == {
        "CUDA Context N (my context) Stream N",
        "CUDA Context N (my context) Stream N (after its work, ä)",
    }
    # what we ask the driver for a name is no call of the program's
    assert not any(call.name == "cuStreamGetCtx" for call in run.trace.calls)


def test_the_name_of_another_thread(xstrace, tmp_path):
    """nvtxNameOsThread() of a thread that has recorded something before, and of one that will."""
    run = xstrace(NVTX, "cuda_nvtx", [3], env=SoftCUDA(tmp_path).env)
    rows = run.trace.names("thread_name")
    names = {rows[task.track] for task in run.trace.tasks if task.name in ("NVTX::before", "NVTX::after")}
    assert names == {"named before", "named after"}


def test_counters_of_nvtx(xstrace, tmp_path):
    """By its extension: numbers of every width; what has no value, or no number, is not shown."""
    run = xstrace(NVTX, "cuda_nvtx", env=SoftCUDA(tmp_path).env)
    if "counters" not in run.out:
        pytest.skip("NVTX's headers have no counters")
    found = collections.defaultdict(list)
    for e in events(run):
        if e["ph"] == "C":
            found[e["name"]].append(e["args"]["value"])
    assert found == {
        "my domain::integers": [-7, 0, 4],
        "NVTX::reals": [2.25, 3],
        "my domain::bytes": [-3],
    }


USERS = """
#include <stddef.h>
#include <stdio.h>

struct callbacks { size_t size; int (*get_table)(int, void (****)(void), unsigned *); };

static int depth;
static int push(const char *text) { printf("user's push %s\\n", text); return depth++; }
static int pop(void) { return --depth; }
static void *registered(void *domain, const char *text) { printf("user's string %s in %p\\n", text, domain); return "users"; }
static int push_in(void *domain, const void *attributes)
{
	const char *text = *(const char *const *)((const char *)attributes + 40);

	printf("user's range %s in %p\\n", text, domain);
	return 0;
}
static void *create(const char *name) { printf("user's domain %s\\n", name); return (void *)0x1234; }

int InitializeInjectionNvtx2(const void *(*get)(unsigned))
{
	const struct callbacks *callbacks = get(1);
	void (***table)(void);
	unsigned size;

	if (callbacks->get_table(1, &table, &size)) {
		*table[9] = (void (*)(void))push;
		*table[11] = (void (*)(void))pop;
	}
	if (callbacks->get_table(5, &table, &size)) {
		*table[4] = (void (*)(void))push_in;
		*table[10] = (void (*)(void))registered;
		*table[12] = (void (*)(void))create;
	}
	return 1;
}
"""

PROGRAM = """
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

int main(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("mine");
	nvtxEventAttributes_t range = { .version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE };
	int first = nvtxRangePushA("a"), second = nvtxRangePushA("b");

	range.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	range.message.registered = nvtxDomainRegisterStringA(domain, "told");
	nvtxDomainRangePushEx(domain, &range);
	nvtxDomainRangePop(domain);
	printf("%d %d %d\\n", first, second, nvtxRangePop());
	nvtxRangePop();
	return 0;
}
"""


def test_a_library_of_the_users_for_nvtx(xstrace, tmp_path):
    """It is called first, by its own handles, and what it returns the program gets."""
    include = next(BUILD.parent.glob(".venv/lib/python3*/site-packages/nvidia/cu13/include"), None)
    if not include:
        pytest.skip("no headers of NVTX")
    library = compile_c(tmp_path / "users.so", USERS, "-shared", "-fPIC")
    app = compile_c(tmp_path / "app", PROGRAM, "-isystem", include, "-ldl")
    env = {"NVTX_INJECTION64_PATH": str(library), "LD_LIBRARY_PATH": str(LIBRARIES)}
    bare = xstrace.bare(app, env=env)
    run = xstrace(NVTX, app, env=env)
    assert bare.out.splitlines()[-1] == "0 1 1" and "user's push b" in bare.out
    assert "user's range users in 0x1234" in bare.out
    assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err)
    names = sorted(task.name for task in run.trace.tasks)
    assert names == ["NVTX::a", "NVTX::b", "mine::told"]

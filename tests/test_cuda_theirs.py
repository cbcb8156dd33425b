"""Programs that take CUPTI's records of activity for themselves: what they print, and their end, are as without us, and a line says what is not traced."""

import collections

import pytest
from conftest import compile_c
from cuda_log import HAVE_SOFTCUDA
from test_cuda_hostile import KERNELS, kernels, same, sync

pytestmark = pytest.mark.skipif(not HAVE_SOFTCUDA, reason="no headers of CUDA and CUPTI")

ONE = 130000  # one pair of callbacks for a process
SEVERAL = 130500  # each subscriber has its own
HOW = ["linked", "open", "default", "next", "program"]
LEFT = "callbacks of its own for CUPTI's activity"
CHANGED = "a clock of its own, or has turned off what CUPTI's activity tells of a context"


def profiles(xstrace, tmp_path, *args, version=ONE, options=KERNELS, **settings):
    return same(xstrace, sync(tmp_path, CUPTI_VERSION=version, **settings), options, *args, app="cuda_profiles")


def says(run, text):
    return sum(text in line for line in run.said)


@pytest.mark.parametrize("when", ["late", "kept"])
@pytest.mark.parametrize("how", HOW)
def test_a_program_that_comes_after_us(xstrace, tmp_path, how, when):
    """CUPTI has buffers of ours then: they come back to us, not to the program, which would free them. What it had asked for by itself goes on."""
    run = profiles(xstrace, tmp_path, how, when, "clocks")
    assert "records 200 others 0 foreign 0 second 0\nanother clock 0\n" in run.out
    assert kernels(run) == 50 and run.trace.other.get("open_commands", 0) == 0
    assert says(run, LEFT) == 1 and LEFT in run.trace.other["not_seen"][0]


@pytest.mark.parametrize("how", HOW)
def test_a_program_that_comes_before_us(xstrace, tmp_path, how):
    """It has registered its callbacks before CUDA is initialised: ours would take their place."""
    run = profiles(xstrace, tmp_path, how, "early", "clocks", options=f"{KERNELS} -v")
    assert "records 200 others 0" in run.out
    assert says(run, "CUDA is not traced in process") == says(run, "cuptiActivityRegisterCallbacks(): another profiler") == 1
    assert not kernels(run) and not says(run, LEFT)


@pytest.mark.parametrize("when", ["early", "late", "twice", "finalized"])
@pytest.mark.parametrize("how", ["linked", "open"])
def test_a_newer_cupti_serves_both(xstrace, tmp_path, how, when):
    run = profiles(xstrace, tmp_path, how, when, version=SEVERAL, options=f"{KERNELS} -v")
    launched = {"early": 200, "late": 300, "twice": 400, "finalized": 50}[when]
    assert kernels(run) == launched
    assert not says(run, "not traced")


@pytest.mark.parametrize("when", ["early", "late"])
def test_calls_alone_need_no_callbacks(xstrace, tmp_path, when):
    run = profiles(xstrace, tmp_path, "linked", when, options="--chrome-call-logging -v")
    assert not says(run, "not traced")
    calls = collections.Counter(call.name for call in run.trace.calls)
    assert calls["cudaLaunchKernel"] == {"early": 200, "late": 300}[when]


@pytest.mark.parametrize("when", ["twice", "finalized"])
def test_again_and_again(xstrace, tmp_path, when):
    run = profiles(xstrace, tmp_path, "linked", when)
    assert kernels(run) == 50 and " foreign 0 " in run.out
    # cuptiFinalize() has ended our part before, which nothing says
    assert says(run, LEFT) == 1


@pytest.mark.parametrize("when", ["forked", "refused"])
def test_what_is_none_of_ours(xstrace, tmp_path, when):
    """A child of fork registers its own; CUPTI refuses what is no callback. We go on."""
    run = profiles(xstrace, tmp_path, "linked", when)
    run.check_expected()
    assert kernels(run) == 100 and not says(run, LEFT)


@pytest.mark.parametrize("how", ["linked", "open"])
def test_kinds_that_it_turns_off_without_callbacks(xstrace, tmp_path, how):
    """It gets no records in any case. They go on for us, and are off when it registers its own."""
    run = profiles(xstrace, tmp_path, how, "unheard")
    assert "records 0 others 0 foreign 0 second 0\n" in run.out and "records 50 others 0" in run.out
    assert kernels(run) == 50 and sum(slice.base == "memset" for slice in run.trace.device) == 100
    assert says(run, LEFT) == 1


@pytest.mark.parametrize("version", [ONE, SEVERAL])
@pytest.mark.parametrize("how", ["linked", "open"])
def test_a_context_that_it_turns_off(xstrace, tmp_path, how, version):
    """That is stronger than what we have asked for: we leave, where CUPTI has it once for a process."""
    run = profiles(xstrace, tmp_path, how, "context", version=version)
    assert "records 0 others 0" in run.out and kernels(run) == (50 if version == ONE else 150)
    assert says(run, CHANGED) == (version == ONE) and not says(run, LEFT)


def in_their_calls(run):
    """The device's work lies within the calls."""
    calls = run.trace.calls
    first, last = min(call.start for call in calls), max(call.end for call in calls)
    return all(first <= one.start <= one.end <= last for one in run.trace.device) and "impossible_times" not in run.trace.other


@pytest.mark.parametrize("version", [ONE, SEVERAL])
@pytest.mark.parametrize("how", ["linked", "open"])
def test_a_clock_that_comes_before_ours(xstrace, tmp_path, how, version):
    """It stays the one by which CUPTI stamps; we read it beside ours."""
    run = profiles(xstrace, tmp_path, how, "clock_first", version=version)
    assert "records 200 " in run.out and "by its clock 200\n" in run.out
    assert kernels(run) == (100 if version == ONE else 300) and in_their_calls(run)
    assert says(run, LEFT) == (version == ONE) and not says(run, CHANGED)


@pytest.mark.parametrize("version", [ONE, SEVERAL])
@pytest.mark.parametrize("how", ["linked", "open"])
def test_a_clock_that_comes_after_ours(xstrace, tmp_path, how, version):
    """Some of what has begun would end by the other clock: we leave."""
    run = profiles(xstrace, tmp_path, how, "clock_later", version=version)
    assert "records 200 " in run.out and "by its clock 200\n" in run.out
    assert kernels(run) == 100 and in_their_calls(run) and run.trace.other.get("open_commands", 0) == 0
    assert says(run, CHANGED) == 1 and CHANGED in run.trace.other["not_seen"][0]


@pytest.mark.parametrize(
    "options", [KERNELS, f"{KERNELS} --chrome-call-logging", f"{KERNELS} -q -o rep.csv", f"{KERNELS} --stall-sampling -o rep.csv"]
)
def test_while_other_threads_launch(xstrace, tmp_path, options):
    for _ in range(3):
        run = profiles(xstrace, tmp_path, "open", "threads", options=options)
        assert "then 1000, foreign 0" in run.out


@pytest.mark.parametrize("fault", ["block", 1])
def test_buffers_that_come_back_too_late(xstrace, tmp_path, fault):
    """Our thread never comes back from CUPTI, or CUPTI fails: a buffer of ours is with it when the program's callbacks are there."""
    cuda = sync(tmp_path, CUPTI_VERSION=ONE)
    bare = xstrace.bare("cuda_profiles", ["linked", "twice"], env=cuda.env)
    env = cuda.env | {"SOFTCUDA_FAULT": f"cuptiActivityFlushAll:1:{fault}"}
    run = xstrace(KERNELS, "cuda_profiles", ["linked", "twice"], env=env)
    assert (run.status, run.err) == (0, "") and " foreign 0 " in run.out
    assert len(run.out.splitlines()) == len(bare.out.splitlines())
    assert says(run, LEFT) == 1


ABSENT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	static const char *const names[] = { "cuptiActivityRegisterCallbacks", "cuptiActivityEnable", "cuptiActivityEnableAndDump", "cuptiActivityDisable" };
	int (*asks)(const char *) = (int (*)(const char *))dlsym(dlopen(argv[1], RTLD_NOW), "asks");
	for (int i = 0; i < 4; i++)
		printf("%s %d %d %d %d\n", names[i], !!dlsym(RTLD_DEFAULT, names[i]), !!dlsym(RTLD_NEXT, names[i]), !!dlsym(dlopen(NULL, RTLD_NOW), names[i]), asks(names[i]));
	puts(dlerror() ? "told" : "not told");
	return 0;
}
"""


ASKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
int asks(const char *name) { return !!dlsym(RTLD_DEFAULT, name); }
"""


def test_a_program_without_cupti(xstrace, tmp_path):
    """It asks whether there is one, and a library of it does: what we are in front of with does not seem to be it."""
    app = compile_c(tmp_path / "absent", ABSENT, "-ldl")
    library = compile_c(tmp_path / "asks.so", ASKS, "-shared", "-fPIC", "-ldl")
    bare = xstrace.bare(app, [library])
    run = xstrace(KERNELS, app, [library])
    assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err)
    assert "cuptiActivityEnable 0 0 0 0\n" in run.out and run.out.endswith("told\n")


APART = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
	static const char *const names[] = { "cuptiActivityRegisterCallbacks", "cuptiActivityEnable", "cuptiActivityDisable", "cuptiActivityRegisterTimestampCallback" };
	void *library = !strcmp(argv[2], "apart") ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : dlopen(argv[1], RTLD_NOW | (strcmp(argv[2], "all") ? RTLD_LOCAL : RTLD_GLOBAL));
	void *handles[] = { library, dlopen(NULL, RTLD_NOW), RTLD_DEFAULT, RTLD_NEXT };
	for (int i = 0; library && i < 4; i++, puts(""))
		for (int j = 0; j < 4; j++) printf(" %d", !!dlsym(handles[j], names[i]));
	int (*disable)(int) = (int (*)(int))dlsym(library, "cuptiActivityDisable");
	printf("%d\n", disable ? disable(1) : -1);
	return 0;
}
"""


@pytest.mark.parametrize("how", ["alone", "all", "apart"])
def test_who_sees_a_cupti_that_is_opened(xstrace, tmp_path, how):
    """Through its handle it is there, also in another namespace; for everybody only where it was opened so."""
    cuda = sync(tmp_path)
    app = compile_c(tmp_path / "apart", APART, "-ldl")
    library = cuda.libraries / "libcupti.so.13"
    bare = xstrace.bare(app, [library, how], env=cuda.env)
    run = xstrace(KERNELS, app, [library, how], env=cuda.env)
    assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err)
    assert run.out == f" 1{' 1' * 3 if how == 'all' else ' 0' * 3}\n" * 4 + "0\n"


PLUGIN = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int cuptiActivityRegisterCallbacks(void *, void *), cuptiActivityEnable(int), cuptiActivityFlushAll(uint32_t);
int cuptiActivityGetNextRecord(uint8_t *, size_t, void **);
static int records;
static void request(uint8_t **buffer, size_t *size, size_t *count) { *buffer = malloc(*size = 65536), *count = 0; }
static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	for (void *record = NULL; !cuptiActivityGetNextRecord(buffer, valid, &record);) records++;
	free(buffer);
}
void take(void) { printf("%d %d\n", cuptiActivityRegisterCallbacks((void *)request, (void *)complete), cuptiActivityEnable(2)); }
void tell(void) { cuptiActivityFlushAll(1), printf("%d fills\n", records); }
"""

HOST = r"""
#include <dlfcn.h>
#include <stddef.h>
int cudaMalloc(void **, size_t), cudaMemset(void *, int, size_t), cudaDeviceSynchronize(void);
int main(int argc, char **argv)
{
	void *memory, *plugin;
	cudaMalloc(&memory, 4096);
	for (int i = 0; i < 50; i++) cudaMemset(memory, i, 4096);
	cudaDeviceSynchronize();
	if (!(plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))) return 97;
	((void (*)(void))dlsym(plugin, "take"))();
	for (int i = 0; i < 200; i++) cudaMemset(memory, i, 4096);
	cudaDeviceSynchronize();
	((void (*)(void))dlsym(plugin, "tell"))();
	return 0;
}
"""


def test_a_library_that_is_linked_with_cupti(xstrace, tmp_path):
    """Only the library that is opened by the program knows libcupti, as PyTorch's do."""
    cuda = sync(tmp_path, CUPTI_VERSION=ONE)
    plugin = compile_c(tmp_path / "plugin.so", PLUGIN, "-shared", "-fPIC", cuda.libraries / "libcupti.so.13")
    app = compile_c(tmp_path / "host", HOST, cuda.libraries / "libcudart.so.13", "-ldl", "-Wl,--allow-shlib-undefined")
    bare = xstrace.bare(app, [plugin], env=cuda.env)
    run = xstrace(KERNELS, app, [plugin], env=cuda.env)
    assert (run.status, run.out, run.err) == (bare.status, bare.out, bare.err) == (0, "0 0\n200 fills\n", "")
    assert len(run.trace.device) == 50 and says(run, LEFT) == 1

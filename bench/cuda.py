"""The figures of CUDA and NVTX, on the software CUDA (tests/softcuda/) that executes a launch in its call."""

import copy
import functools
import os

from measure import Failed, Figure, Tracer, over_bare

CALLS = 10_000  # the ring has room for what they leave
FLOOR = "empty subscriber"


class Cuda:
    """The program bare, under CUPTI with an empty subscriber, and under xstrace, in the same rounds."""

    def __init__(self, bench):
        build = bench.args.build
        self.bench = bench
        self.program = [os.path.join(build, "tests", "apps", "cuda_calls"), CALLS]
        self.subscriber = os.path.join(build, "bench", "empty_subscriber.so")
        libraries = [os.path.join(build, "tests", "softcuda", name) for name in ("cuda13", "")]
        self.environment = {"LD_LIBRARY_PATH": ":".join(libraries), "SOFTCUDA_SYNC": "1"}
        if not os.path.exists(self.subscriber):
            raise Failed("no headers of CUDA and CUPTI when this was built")

    def run(self, tracer, options=(), **environment):
        tracer = copy.copy(tracer)
        tracer.environment = {**tracer.environment, **self.environment, **environment}
        return self.bench.scratch.run(tracer, self.program, options)

    def rounds(self, options, calls=None, work=False):
        """{name: [figures of each round]}; calls, work: what the empty subscriber hears."""
        hears = {"CUDA_INJECTION64_PATH": self.subscriber}
        hears |= {"SUBSCRIBER_CALLS": calls} if calls else {}
        hears |= {"SUBSCRIBER_WORK": "1"} if work else {}
        return self.bench.interleave(
            3 * self.bench.rounds,
            {
                "bare": functools.partial(self.run, Tracer()),
                FLOOR: functools.partial(self.run, Tracer(), **hears),
                "xstrace": functools.partial(self.run, self.bench.xstrace, options),
            },
        )


def row(what, values, goal=None):
    beside = {name: v for name, v in values.items() if name != "xstrace"}
    return Figure(what, "ns", values["xstrace"], goal, beside, least=FLOOR)


def over(results, key, name):
    return [run[key] - base[key] for run, base in zip(results["xstrace"], results[name])]


def cuda_calls(bench):
    """CUDA's calls over bare: recorded, with device work alone, paused; a kernel's record; NVTX beside ITT."""
    cuda = Cuda(bench)
    logged = cuda.rounds(["--chrome-call-logging"], "all")
    yield row("cudaGetDevice, --chrome-call-logging, over bare", over_bare(logged, "get_device"), 100)
    paused = cuda.rounds(["--chrome-call-logging", "--start-paused"], "all")
    yield row("the same, paused", over_bare(paused, "get_device"), 3)
    device = cuda.rounds(["-d"], "launches")
    yield row("cudaGetDevice, -d, over bare", over_bare(device, "get_device"), 25)
    work = cuda.rounds(["-d"], "launches", work=True)
    yield row("launch of a kernel, -d, over bare", over_bare(work, "launch"))
    yield Figure("the same, over an empty subscriber with buffers", "ns", over(work, "launch", FLOOR), 25)


def nvtx(bench):
    """An NVTX range beside an ITT task, while the ring has room."""
    cuda, itt = Cuda(bench), [bench.pairs_itt, "burst", 101, 8192]
    option = ["--chrome-itt-logging"]
    results = bench.interleave(
        3 * bench.rounds,
        {
            "bare": functools.partial(cuda.run, Tracer()),
            "xstrace": functools.partial(cuda.run, bench.xstrace, option),
            "ITT": lambda: bench.scratch.run(bench.xstrace, itt, option),
        },
    )
    pairs = {"ITT begin+end pair": [run["wall"] for run in results.pop("ITT")]}
    yield row("NVTX push+pop, ring has room, over bare", {**over_bare(results, "push_pop"), **pairs})

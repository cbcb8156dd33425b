"""The toy API: what its program prints is the truth."""

import collections


def test_every_call_and_launch(xstrace):
    run = xstrace("--chrome-call-logging --chrome-device-logging -c -d", "toy_calls", [4])
    assert run.status == 0
    printed = [line.split() for line in run.out.splitlines()]
    shown = [(work.name.split("[")[0], work.end - work.start) for work in sorted(run.trace.device, key=lambda work: work.start)]
    assert [name for name, _ in shown] == [name for name, _ in printed] == ["even", "odd"] * 2
    for (_, length), (_, ns) in zip(shown, printed):
        assert abs(length - int(ns)) <= 1
    calls = collections.Counter(call.name for call in run.trace.calls)
    assert calls == {"toyQueueCreate": 1, "toyLaunch": 5, "toyQueueDestroy": 1}
    failed = [call for call in run.trace.calls if "result" in call.args]
    assert [call.args["result"] for call in failed] == [7]
    assert 'kernel = "even"' in run.err and "TOY_BAD_QUEUE" in run.err


def test_device_work_alone(xstrace):
    run = xstrace("--chrome-device-logging", "toy_calls", [3])
    assert len(run.trace.device) == 3 and run.trace.calls == []

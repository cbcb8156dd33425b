"""The run's mailbox is another file than the one that the drain process has: nobody waits for ever, and nothing is lost."""

import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import APPS


@pytest.mark.parametrize("tasks", [10, 50_000])
def test_a_mailbox_that_was_replaced(xstrace, tasks):
    """By a copy: who joins later has that one, rings where nobody hears it, and ends at once or fills its ring."""
    script = f"{APPS / 'itt_tasks'} 5; read line; {APPS / 'itt_tasks'} {tasks} 2"
    run = xstrace.start("--chrome-itt-logging --ring-size 64K", "sh", ["-c", script], stdin=subprocess.PIPE)
    run.wait_for_output("expected: 5 tasks")
    mailbox = Path(run.dir, "mailbox")
    shutil.copy2(mailbox, mailbox.with_name("copy"))
    mailbox.with_name("copy").rename(mailbox)
    run.process.stdin.close()
    run.finish(30)
    assert run.status == 0 and sorted(trace.count("tasks") for trace in run.traces) == [5, 2 * tasks]
    assert all(trace.other["lost"] == 0 for trace in run.traces)

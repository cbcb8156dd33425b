"""The commands as pip installs them: each loads its module when it is called.

Loading takes some tens of milliseconds. Ctrl-C ends the command then as it ends any program; from there on running.py sees to it.
"""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _later(module: str) -> Callable[[], int]:
    def command() -> int:
        return importlib.import_module(f".{module}", __package__).main()

    return command


analyze, check, diff, opener, path = map(_later, ("analyze", "check", "diff", "opener", "path"))
query, report, roofline, summary, view = map(_later, ("query", "report", "roofline", "summary", "view"))

"""The commands as pip installs them: each loads its module when it is called.

Loading takes some tens of milliseconds. Ctrl-C ends the command then as it ends any program; from there on running.py sees to it.
"""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def analyze() -> int:
    from .analyze import main

    return main()


def check() -> int:
    from .check import main

    return main()


def diff() -> int:
    from .diff import main

    return main()


def opener() -> int:
    from .opener import main

    return main()


def path() -> int:
    from .path import main

    return main()


def query() -> int:
    from .query import main

    return main()


def report() -> int:
    from .report import main

    return main()


def roofline() -> int:
    from .roofline import main

    return main()


def summary() -> int:
    from .summary import main

    return main()


def view() -> int:
    from .view import main

    return main()

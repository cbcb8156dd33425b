#!/usr/bin/env python3
"""Runs xstrace.view: the package lies in ../python/ or, installed, beside this file or in ../share/xstrace/."""

import os
import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # until the command itself sees to it
    signal.signal(signal.SIGINT, signal.SIG_DFL)
here = os.path.dirname(os.path.realpath(__file__))
for place in (here, os.path.join(here, "..", "share", "xstrace"), os.path.join(here, "..", "python")):
    if os.path.exists(os.path.join(place, "xstrace", "__init__.py")):
        sys.path.insert(0, place)
        break

from xstrace.view import main  # noqa: E402

sys.exit(main())

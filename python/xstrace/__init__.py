"""Tools that read the traces of xstrace, unitrace, cliloader and Kineto; see docs/TRACE_FORMAT.md.

from xstrace import open_trace, check_trace, summarize

with open_trace("app.123.json.zst") as trace:
    for event in trace:             # one dict each; event["ts"] and event["dur"] in integer ns
        ...
assert check_trace("app.123.json", strict=True) == []
"""

from .check import check_trace
from .summary import summarize
from .trace import Trace, TraceError, open_trace

__all__ = ["Trace", "TraceError", "check_trace", "open_trace", "summarize"]

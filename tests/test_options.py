"""The command line: what is wrong is said in one line, and nothing is begun."""

import os
import re
import subprocess

import pytest

from conftest import APPS, ROOT, XSTRACE

TABLE = re.findall(
    r"^\s*(FLAG|COUNT|MAYBE_COUNT|MAYBE_TEXT|SIZE|TIME|CHOICE|TEXT|CHECKED|COUNT_OR_ALL|TEXTS|LIST)\((?:('.'|0), )?\"([\w-]+)\"",
    (ROOT / "common/options.c").read_text(),
    re.M,
)
CHROME = "--chrome-itt-logging"


def xs(*args, cwd, **more):
    """The launcher alone; a CompletedProcess."""
    command = [str(arg) for arg in (XSTRACE, *args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, **more)


def help_lines():
    return xs("--help", cwd="/").stdout.splitlines()


BAD = [
    # arguments, exit status, what the line says
    ("--chrome-kernel-loging true", 125, "--chrome-kernel-logging"),
    ("--chrome-itt true", 125, "--chrome-itt-logging"),
    ("--ringsize 1M true", 125, "--ring-size"),
    ("--vebose true", 125, "--verbose"),
    ("--xyzzy true", 125, "--xyzzy"),
    ("-x true", 125, "-x"),
    ("-hdx true", 125, "-x"),
    ("--help=5", 125, "--help: no topic or option '5'"),
    ("--help outptu", 125, "try xstrace --help output"),
    ("--help --ring-siez", 125, "try xstrace --help ring-size"),
    (f"--help={'x' * 64}", 125, "--help"),
    ("--verbose=1 true", 125, "--verbose"),
    ("--ring-size", 125, "--ring-size"),
    ("-o", 125, "--output"),
    ("-o . true", 125, "--output .: a directory"),
    ("-o here/ true", 125, "--output here/: a directory"),
    ("-o here/.. true", 125, "--output here/..: a directory"),
    ("--ring-size= true", 125, "--ring-size"),
    ("--ring-size abc true", 125, "abc"),
    ("--ring-size -5 true", 125, "-5"),
    ("--ring-size 1K true", 125, "1K"),
    ("--ring-size 2G true", 125, "2G"),
    ("--ring-size 64KK true", 125, "64KK"),
    ("--ring-size 1.5M true", 125, "1.5M"),
    ("--ring-size 99999999999999999999 true", 125, "9999"),
    ("--ring-size 18014398509481985K true", 125, "1801"),
    ("--call-stacks=0 -h true", 125, "from 1 to 128"),
    ("--call-stacks=many -h true", 125, "many"),
    ("--call-stacks=129 -h true", 125, "129"),
    ("--call-stacks --chrome-itt-logging true", 125, "--call-stacks"),
    ("--chrome-event-buffer-size -2 true", 125, "buffer-size"),
    ("--chrome-event-buffer-size 2147483648 true", 125, "buffer-size"),
    ("--chrome-event-buffer-size 1K true", 125, "1K"),
    ("--ring-size 1M --chrome-event-buffer-size 5 true", 125, "one of them"),
    ("--on-full sometimes true", 125, "sometimes"),
    ("--backlog 16X true", 125, "16X"),
    ("--backlog 2048G true", 125, "--backlog takes a number from 0 to"),
    ("--backlog-disk 2048G true", 125, "--backlog-disk takes a number from 0 to"),
    ("--on-full bloc true", 125, "block|drop|overwrite"),
    ("--compress gzip --chrome-itt-logging true", 125, "gzip"),
    ("--compress zstd true", 125, "--compress"),
    ("--compress zstd -h -d true", 125, "--compress"),
    ("--report-format xml -h -o rep true", 125, "text|json|csv"),
    ("--report-format json --chrome-itt-logging true", 125, "--report-format"),
    ("--report-format csv -h true", 125, "--output"),
    ("-s --flight-recorder 5s --chrome-itt-logging true", 125, "without it"),
    ("--pause a --dump b", 125, "give one of --pause and --dump"),
    ("--pause a --resume a", 125, "give one of --pause and --resume"),
    ("--recover d --device-list", 125, "give one of --recover and --device-list"),
    ("--dump a true", 125, "--dump takes no application (true)"),
    ("--stacks a true", 125, "--stacks takes no application (true)"),
    ("--once -h true", 125, "--once needs --top"),
    ("--json --top", 125, "--json needs --top --once"),
    ("--stacks a --stop b", 125, "give one of --stop and --stacks"),
    ("--watchdog soon true", 125, "--watchdog"),
    ("--device-list true", 125, "--device-list takes no application (true)"),
    ("", 125, "no application"),
    ("-h", 125, "no application"),
    ("-h --", 125, "no application"),
    ("nonexistent-program", 127, "nonexistent-program"),
    ("/nonexistent/program", 127, "/nonexistent/program"),
    ("./not-executable", 126, "not-executable"),
    ("./directory", 126, "directory"),
    ("./file/below", 126, "file/below"),
    ("./garbage", 126, "garbage"),
    ("./no-interpreter", 127, "no-interpreter"),
    ("--output-dir-path new ./no-interpreter", 127, "no-interpreter"),
    ("--output-dir-path new ./garbage", 126, "garbage"),
    ("--output-dir-path new nonexistent", 127, "nonexistent"),
    ("--output-dir-path /nonexistent/deep true", 125, "/nonexistent/deep"),
    ("--output-dir-path file true", 125, "file"),
    ("--output-dir-path= true", 125, "--output-dir-path"),
    ("--result-dir", 125, "--result-dir"),
    ("--result-dir file true", 125, "file"),
    ("--result-dir r -o x true", 125, "--output"),
    ("--result-dir new ./garbage", 126, "garbage"),
    ("--output-dir-path /proc/1/x --chrome-itt-logging true", 125, "/proc/1/x"),
    ("-o /nonexistent/rep.txt true", 125, "/nonexistent"),
    ("-o directory/sub/rep.txt true", 125, "directory/sub"),
    (f"-o {'x' * 2000} true", 125, "--output"),
    ("--device-list true", 125, "--device-list"),
    ("--devices-to-sample a -d true", 125, "0,2-3"),
    ("--recover /nonexistent", 125, "/nonexistent"),
    ("--recover directory", 125, "--recover directory: no run directory"),
    ("--recover file", 125, "file"),
    ("--recover directory true", 125, "--recover"),
]


@pytest.fixture
def place(tmp_path):
    """A directory with things that are no programs; nothing may appear in it."""
    (tmp_path / "directory").mkdir()
    for name, text, mode in [
        ("file", "x", 0o644),
        ("not-executable", "#!/bin/sh\n", 0o644),
        ("garbage", "\x7fELF\0\0garbage", 0o755),
        ("no-interpreter", "#!/nonexistent/interpreter\n", 0o755),
    ]:
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    return tmp_path


@pytest.mark.parametrize("args, status, says", BAD, ids=lambda value: str(value)[:60])
def test_bad_use(place, args, status, says):
    before = sorted(place.rglob("*")), os.listdir("/dev/shm")
    result = xs(*args.split(), cwd=place)
    assert (result.returncode, result.stdout) == (status, "")
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("xstrace: ") and says in lines[0], lines
    assert (sorted(place.rglob("*")), os.listdir("/dev/shm")) == before


def test_the_statuses_are_those_of_env(place):
    for app in (
        "./not-executable",
        "./directory",
        "./file/below",
        "./no-interpreter",
        "nonexistent",
        "",
    ):
        other = subprocess.run(["env", app], cwd=place, capture_output=True)
        assert xs(app, cwd=place).returncode == other.returncode, app


VALUES = {
    "cpu-metrics": "page-faults",
    "ring-size": "128K",
    "chrome-event-buffer-size": "4000",
    "group": "ComputeBasic",
    "sampling-interval": "50",
    "reset-event-on-device": "1",
    "on-full": "drop",
    "compress": "none",
    "format": "kineto",
    "report-format": "csv",
    "output": "rep.txt",
    "output-dir-path": "out",
    "result-dir": "results",
    "call-stacks": "32",
    "system-metrics": "50",
    "python-stacks": "app,-json",
    "export": "prometheus:0",
    "chrome-kmd-logging": "/dev/null",
    "delay": "20ms",
    "duration": "1.5s",
    "iterations": "step:2-3",
    "ranks-to-sample": "0,3,8-15",
    "devices-to-sample": "0",
    "follow-child-process": "0",
    "include-kernels": "gemm,conv",
    "exclude-kernels": "copy",
    "exclude-calls": "MPI_Test",
    "include-kernels-file": "/etc/passwd",
    "exclude-kernels-file": "/etc/passwd",
    "flight-recorder": "10s",
    "flight-memory": "16M",
    "trigger": "task:step>50ms",
    "watchdog": "30s",
    "session": "options",
    "teardown-on-signal": "15",
    "backlog": "16M",
    "backlog-disk": "1G",
}
# what else an option needs
WITH = {
    "report-format": ["-h", "-o", "rep"],
    "flight-recorder": [CHROME],
    "flight-memory": [CHROME, "--flight-recorder=1"],
    "trigger": [CHROME, "--flight-recorder=1"],
}
ALONE = ("recover", "pause", "resume", "stop", "dump", "stacks", "attach", "top", "once", "json", "open", "device-list", "metric-list", "doctor", "version", "help")
ROWS = [row for row in TABLE if row[2] not in ALONE]


@pytest.mark.parametrize("kind, letter, name", ROWS, ids=[row[2] for row in ROWS])
def test_every_option_is_accepted(xstrace, kind, letter, name):
    value = [] if kind == "FLAG" else [VALUES[name]]
    forms = [["--" + name, *value]]
    if value:
        forms.append([f"--{name}={value[0]}"])
    if kind in ("MAYBE_COUNT", "MAYBE_TEXT"):
        forms[0] = ["--" + name]
    if letter not in ("", "0"):
        forms.append(["-" + letter[1], *value])
        forms.append(["-" + letter[1] + "".join(value)])
    for form in forms:
        run = xstrace([*WITH.get(name, []), *form], "true", env={"RANK": "3"})
        assert (run.status, run.out, run.err) == (0, "", ""), form


MISSING = {
    "-q": "--metric-query: nothing is measured: Level Zero has no metrics",
    "--metric-query --group=X": "--metric-query: nothing is measured",
    "-k": "--metric-sampling: nothing is measured: Level Zero has no metrics",
    "--stall-sampling -i 20": "--stall-sampling: nothing is measured",
    "-k --group=X -i 50 --idle-sampling": "--metric-sampling: nothing is measured",
    "--system-time": "--system-time: traces count from the epoch",
}


@pytest.mark.parametrize("options", MISSING)
def test_what_has_no_backend_yet(xstrace, options):
    """One line, and the application runs; with what else was asked for."""
    run = xstrace(f"{options} {CHROME}", "itt_tasks", [3])
    assert run.status == 0 and run.trace.count("tasks") == 3
    said = [line for line in run.said if "Timeline" not in line]
    assert len(said) == 1 and MISSING[options] in said[0]
    run = xstrace(f"{options} --ranks-to-sample 5", "echo", ["ran"], env={"RANK": "5"})
    assert (run.status, run.out) == (0, "ran\n") and any(MISSING[options] in line for line in run.said)


def test_metrics_mean_device_timing(xstrace):
    """As in unitrace: where nothing else shows kernels."""
    run = xstrace("-q", "cl_dlopen")
    assert "=== Device Timing Summary ===" in run.err and "=== API" not in run.err
    run = xstrace("-q --chrome-device-logging", "cl_dlopen")
    assert run.err == "" and run.trace.device
    run = xstrace("-k -h", "cl_dlopen")
    assert "=== Device Timing Summary ===" in run.err and "=== API" in run.err


def test_event_buffer_sizes(xstrace):
    """unitrace's -1, its default, is ours; the least and the most are what a ring may have."""
    for size, ring in (("-1", 1 << 20), ("0", 65536), ("1", 65536), ("100000", 4 << 20), ("2147483647", 1 << 30)):
        run = xstrace(f"{CHROME} --chrome-event-buffer-size {size}", "itt_tasks", [3])
        assert run.trace.count("tasks") == 3 and run.trace.metadata["ring_size"] == ring, size
    run = xstrace(f"{CHROME} --ring-size 2M --chrome-event-buffer-size=-1", "itt_tasks", [3])
    assert run.trace.metadata["ring_size"] == 2 << 20


def test_help_and_the_page_list_every_option():
    names = re.findall(r"^--([\w-]+)", "\n".join(help_lines()), re.M)
    assert names == [row[2] for row in TABLE]
    subprocess.run([ROOT / "scripts/options-page", "--check", XSTRACE], check=True)


def test_version():
    result = xs("--version", cwd="/")
    version = (ROOT / "VERSION").read_text().strip()
    assert (result.returncode, result.stdout, result.stderr) == (0, f"xstrace {version}\n", "")


@pytest.mark.parametrize("dashes", [[], ["--"]])
def test_options_behind_the_application_are_its_own(xstrace, dashes):
    run = xstrace(["-d", *dashes], "echo", ["-h", "--help", "--", "--ring-size"])
    assert run.out == "-h --help -- --ring-size\n"


def test_application_is_found_as_execvp_finds_it(xstrace):
    """Along $PATH, past what cannot be run; a name with a slash is not looked for."""
    for name, mode in (("one", 0o644), ("two", 0o755)):
        (xstrace.home / name).mkdir()
        (xstrace.home / name / "prog").write_text(f"#!/bin/sh\necho {name} $0\n")
        (xstrace.home / name / "prog").chmod(mode)
    env = {"PATH": f"{xstrace.home}/one::{xstrace.home}/two:{os.environ['PATH']}"}
    run = xstrace("-d", "prog", env=env)
    assert (run.status, run.out) == (0, f"two {xstrace.home}/two/prog\n")


def test_output_directory(xstrace):
    """Made if missing; relative to where xstrace was started, not to where the app went."""
    for path in ("out", str(xstrace.home / "absolute")):
        run = xstrace(f"{CHROME} --output-dir-path {path}", "chdirer").check_expected()
        assert all(t.path.parent.name == os.path.basename(path) for t in run.traces)
    assert [p.name for p in xstrace.cwd.iterdir()] == ["out"]


def test_report_is_not_in_the_output_directory(xstrace):
    run = xstrace("-h -d -o rep --output-dir-path out", "cl_dlopen")
    assert list((run.cwd / "out").iterdir()) == []
    assert re.fullmatch(r"rep\.\d+", *[p.name for p in run.cwd.iterdir() if p.name != "out"])


def test_existing_report_is_kept(xstrace):
    script = f"echo old > rep.$$.txt; exec {APPS}/cl_dlopen"
    run = xstrace("-d -o rep.txt", "sh", ["-c", script])
    assert sorted(len(p.read_text()) > 10 for p in run.cwd.iterdir()) == [False, True]


def test_empty_application_name(xstrace):
    result = xs("", cwd=xstrace.cwd)
    assert result.returncode == 127 and result.stderr.count("\n") == 1

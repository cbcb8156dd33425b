"""Help where people look: --help by topics, manual pages, completions, a line of progress. All of it is made of the same table."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time

import pytest

from conftest import BUILD, ROOT, XSTRACE

MERGE = BUILD / "merge/xstrace-merge"
PAGES = BUILD / "scripts"
PROGRAMS = {"xstrace": XSTRACE, "xstrace-merge": MERGE, "xstrace-tables": BUILD / "tables/xstrace-tables"}
TOOLS = [*PROGRAMS, *(path.name for path in sorted((ROOT / "scripts").glob("xstrace-*")))]
TOOLS += ["analyzeperfmetrics.py", "categorize.py", "mergetrace.py", "roofline.py", "summary.py", "uniview.py"]


def output(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=60, **more).stdout


def options_of(text):
    return re.findall(r"^(?:  )?--([\w-]+)", text, re.M)


def command_of(tool):
    return [PROGRAMS[tool]] if tool in PROGRAMS else [sys.executable, ROOT / "scripts" / tool]


def topics():
    return re.findall(r"^  (\w+) ", output(XSTRACE, "--help", "topics"), re.M)


# ---- --help ----


def test_the_topics_hold_every_option_once():
    pages = [output(XSTRACE, "--help", topic) for topic in topics()]
    assert len(pages) > 8 and [name for page in pages for name in options_of(page)] == options_of(output(XSTRACE, "--help"))
    assert all(len(line) <= 100 for page in pages for line in page.splitlines())


@pytest.mark.parametrize("topic", topics())
def test_examples_are_accepted(topic, xstrace):
    """Each example, with a program that does nothing; commands of a session find none."""
    page = output(XSTRACE, f"--help={topic}")
    examples = [re.split(r"   ", line.strip())[0] for line in page.split("Examples:\n")[1].splitlines()]
    assert examples
    for example in examples:
        words = example.replace("./app", "true").replace("python train.py", "true").replace("'", "").split()
        words = words[words.index("xstrace") + 1 :]
        run = xstrace.bare(XSTRACE, words)
        session = words[0] in ("--resume", "--stacks")
        assert run.status == (125 if session else 0) and (not session or "session" in run.said[0]), (example, run.said)


def test_one_option():
    for name in ("ring-size", "--ring-size"):
        assert options_of(output(XSTRACE, "--help", name)) == ["ring-size"]
    assert options_of(output(XSTRACE, "--help", "q")) == ["metric-query"]


def test_nothing_is_coloured():
    """NO_COLOR asks for it, and nobody else gets any either."""
    for env in ({}, {"NO_COLOR": "1"}):
        text = at_a_terminal([XSTRACE, "--help", "output"], env) + at_a_terminal([XSTRACE, "--nonsense"], env)
        assert "--output-dir-path" in text and "unknown option --nonsense" in text and "\x1b" not in text


READERS = ["xstrace-summary", "xstrace-check", "xstrace-query --list", "xstrace-path", "xstrace-diff", "xstrace-report -o page.html"]


@pytest.mark.long
def test_no_tool_colours_what_it_says(xstrace):
    """At a terminal either: with NO_COLOR and without."""
    trace = xstrace("--chrome-itt-logging", "itt_tasks", [300, 2]).trace_files[0]
    for tool in READERS:
        words = [*command_of(tool.split()[0]), *tool.split()[1:], trace, *([trace] if "diff" in tool else [])]
        for env in ({"NO_COLOR": ""}, {"NO_COLOR": "1"}):
            text = at_a_terminal(words, env, cwd=xstrace.home)
            assert text and "\x1b" not in text, (tool, text)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_mistaken_option(tool):
    """One line, which names the option that was meant, or else says where all are."""
    name = max(
        re.findall(
            r"^ *(?:-\w[^-\n]*, *)?(--[a-z][\w-]*)", output(*command_of(tool), "--help", env={**os.environ, "COLUMNS": "2000"}), re.M
        ),
        key=len,
    )
    for typed, meant in ((f"{name[:-2]}{name[-1]}{name[-2]}", f"did you mean {name}?"), ("--qqqqqqqq", f"see {tool} --help")):
        done = subprocess.run([*command_of(tool), typed], capture_output=True, text=True)
        assert done.returncode in (1, 2, 125) and done.stdout == ""
        assert done.stderr == f"{tool}: unknown option {typed}; {meant}\n"


# ---- manual pages ----


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("tool", TOOLS)
def test_manual_pages(tool):
    page = PAGES / f"{tool}.1"
    command = command_of(tool)
    shown = (
        output("man", "-l", page, env={**os.environ, "MANWIDTH": "400", "LC_ALL": "C.UTF-8"}) if shutil.which("man") else page.read_text()
    )
    shown = shown.replace("\\-", "-")
    options = re.findall(r"(?<![\w-])--[a-z][\w-]*", re.sub(r"(?s)Exit status.*", "", output(*command, "--help")))
    assert options and not [name for name in options if name not in shown]
    if shutil.which("man"):
        command = ["man", "--warnings", "-l", page]
        env = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
        assert subprocess.run(command, env=env, capture_output=True, text=True).stderr == ""
    if shutil.which("mandoc"):
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True).stdout
        assert [line for line in lint.splitlines() if "missing date" not in line] == []


# ---- completion, by the shells themselves ----


def bash(line):
    """What completes the last word of the line."""
    words = re.split(r" +|(=)", line)
    words = [word for word in words if word is not None and (word or word is words[-1])]
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"source {PAGES}/{words[0]}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; {complete_of(words[0])}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return output("bash", "--norc", "-c", script).split()


def complete_of(tool):
    return "_" + re.sub(r"\W", "_", tool)


def fish(line):
    return [
        row.split("\t")[0]
        for row in output("fish", "--no-config", "-c", f"source {PAGES}/{line.split()[0]}.fish; complete -C '{line}'").splitlines()
    ]


def zsh(line, *answers):
    """A real zsh at a terminal, and one press of the tabulator key."""
    master, slave = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, close_fds=True, env={**os.environ, "TERM": "dumb", "PS1": "> "}
    )
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 50, 500, 0, 0))
    os.close(slave)
    try:
        os.write(master, f"fpath=({PAGES} $fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=1000; echo re''ady\n".encode())
        read_until(master, "ready\r\n")
        os.write(master, f"{line}\t".encode())
        return read_until(master, *answers)
    finally:
        shell.kill()
        shell.wait()
        os.close(master)


def read_until(master, *answers):
    text, end = "", time.monotonic() + 30
    while any(answer not in text for answer in answers) and time.monotonic() < end:
        if select.select([master], [], [], 1)[0]:
            text += os.read(master, 65536).decode(errors="replace")
    assert [answer for answer in answers if answer not in text] == [], text
    return text


LINES = [
    ("xstrace --chrome-ker", {"--chrome-kernel-logging"}),
    ("xstrace --on-full ", {"block", "drop", "overwrite"}),
    ("xstrace -h --format kineto-", {"kineto-hta"}),
    ("xstrace --help out", {"output"}),
    ("xstrace-merge --no-cl", {"--no-clock-sync"}),
    ("xstrace-check --stri", {"--strict"}),
]


@pytest.mark.parametrize("line, answers", LINES)
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_completion(shell, line, answers):
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    assert set({"bash": bash, "fish": fish}[shell](line)) == answers


def test_completion_with_an_equals_sign():
    assert bash("xstrace --on-full=") == ["block", "drop", "overwrite"]


def test_every_option_is_completed():
    names = {"--" + name for name in options_of(output(XSTRACE, "--help"))}
    assert {name.rstrip("=") for name in bash("xstrace --")} == names
    if shutil.which("fish"):
        assert {name.rstrip("=") for name in fish("xstrace --")} >= names
    if shutil.which("zsh"):
        zsh("xstrace --", *names)


def test_behind_the_options_comes_a_command(tmp_path):
    (tmp_path / "program with blanks").write_text("")
    script = f"source {PAGES}/xstrace; COMP_WORDS=(xstrace --ring-size 1M cat prog); COMP_CWORD=4; _xstrace; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    assert output("bash", "--norc", "-c", script, cwd=tmp_path) == "program with blanks\n"
    assert "sleep" in bash("xstrace -h slee")
    if shutil.which("fish"):
        assert "sleep" in fish("xstrace -h slee")


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh")
@pytest.mark.parametrize(
    "line, answer", [("xstrace --chrome-kern", "el-logging"), ("xstrace --on-full=ov", "erwrite"), ("xstrace-merge --no-c", "lock-sync")]
)
def test_completion_in_zsh(line, answer):
    zsh(line, answer)


# ---- progress ----


def at_a_terminal(command, env=None, cwd=None):
    """What a program prints there."""
    master, slave = pty.openpty()
    program = subprocess.Popen([str(word) for word in command], stdout=slave, stderr=slave, env={**os.environ, **(env or {})}, cwd=cwd)
    os.close(slave)
    text = b""
    while True:
        try:
            text += os.read(master, 65536)
        except OSError:
            break
    os.close(master)
    program.wait()
    return text.decode()


def test_merging_tells_how_far_it_is(tmp_path):
    """At a terminal and in long work alone; the line is gone at the end."""
    line = '{"ph":"X","tid":1,"pid":7,"ts":%d.000,"dur":1.000,"cat":"cpu_op","name":"step"},\n'
    with (tmp_path / "long.json").open("w") as file:
        file.write('{"traceEvents":[\n')
        for i in range(1_500_000):
            file.write(line % (10 * i))
        file.write('{"ph":"M","name":"thread_name","pid":7,"tid":1,"args":{"name":"t"}}]}\n')
    # a machine may be so fast that nothing is long: it stands still for a while
    held = '"$@" & sleep 0.1; kill -STOP $!; sleep 1.2; kill -CONT $!; wait $!'
    text = at_a_terminal(["sh", "-c", held, "sh", MERGE, "-o", tmp_path / "a.json", tmp_path / "long.json"])
    shares = [int(share) for share in re.findall(r"\r(?:reading|writing): (\d+) % of 1\d\d\.\d MB", text)]
    assert shares and all(0 <= share <= 100 for share in shares) and "\x1b" not in text
    assert re.search(r"\r {40,}\r\[INFO\] Merged trace is stored in", text)
    quiet = subprocess.run([MERGE, "-o", tmp_path / "b.json", tmp_path / "long.json"], capture_output=True, text=True)
    assert len(quiet.stderr.splitlines()) == 1 and "%" not in quiet.stderr

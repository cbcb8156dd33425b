"""Text of a program's making: on the terminal, in reports, in names of files, in the trace."""

import re
import shutil
import subprocess
import sys

import pytest

from conftest import APPS, ROOT

ITT = "--chrome-itt-logging"
NASTY = "a\x1b[31m\n\x9b\u202eb"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def nasty_program(tmp_path):
    path = tmp_path / NASTY
    shutil.copy(APPS / "itt_tasks", path)
    return path


@pytest.mark.parametrize("options", [ITT, f"{ITT} -v", f"{ITT} --result-dir out", "-h", f"{ITT} --flight-recorder 5s"])
def test_a_program_with_a_nasty_name(xstrace, tmp_path, options):
    run = xstrace(options, nasty_program(tmp_path), [3, 1], cwd=tmp_path)
    text = (run.log / "stderr").read_text(errors="surrogateescape")
    assert "xstrace" in text or "[INFO]" in text
    assert not CONTROL.search(text), text
    made = [p.name for p in tmp_path.rglob("*") if NASTY not in p.parts and p.name != NASTY]
    assert made
    assert not any(CONTROL.search(name) or "\n" in name for name in made), made


@pytest.mark.parametrize("words", [["a", "", "b"], ["", ""], [""], ["x" * 5000, "y"], []])
def test_the_command_is_whole(xstrace, words):
    run = xstrace(ITT, "itt_tasks", ["2", "1", *words])
    command = run.trace.metadata["command"]
    whole = [command[0], "2", "1", *words]
    if sum(map(len, words)) < 4000:
        assert command == whole
    else:
        assert command[:3] == whole[:3]
        assert len(command) == 4
        assert set(command[3]) == {"x"}


def test_what_cannot_be_run(tmp_path):
    """The launcher's own lines."""
    run = subprocess.run(
        [str(APPS.parent.parent / "launcher/xstrace"), ITT, NASTY], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 127
    assert re.fullmatch(r"xstrace: a\?\[31m\?+b: not found\n", run.stderr), run.stderr


def test_one_way_to_the_terminal():
    """Whoever prints by himself forgets what names may hold."""
    allowed = {("common", "text.c")}
    for folder in ("common", "writer", "launcher"):
        for path in (ROOT / folder).rglob("*.c"):
            found = re.findall(r"fprintf\(stderr|fputs\([^;]*stderr|perror\(|\bv?dprintf\(", path.read_text())
            assert not found or (folder, path.name) in allowed, f"{path}: xs_tell() is for that"


def test_readers_print_no_control_characters(tmp_path):
    trace = tmp_path / "t.json"
    names = ["\\u001b[31mred", "a\\nb", "\\u009b2J", "\\u202eleft"]
    events = ",\n".join(
        f'{{"ph":"X","tid":1,"pid":1,"ts":{i}.000,"dur":1.000,"cat":"cpu_op","name":"d::{name}","args":{{"{name}":["{name}"]}}}}'
        for i, name in enumerate(names)
    )
    for content in (f'{{"displayTimeUnit":"ns","traceEvents":[\n{events}\n],"otherData":{{}}}}', '{"\\u001b[31m":\x1b}'):
        trace.write_text(content)
        for tool in ("xstrace-summary", "xstrace-check"):
            run = subprocess.run([sys.executable, ROOT / "scripts" / tool, trace], capture_output=True, text=True)
            assert run.stdout + run.stderr
            assert not CONTROL.search(run.stdout + run.stderr), run.stdout + run.stderr

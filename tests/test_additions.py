"""docs/ADDING.md says how many files a sink and a backend take: one is added to a copy of the tree, built and used."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import ROOT, expected_lines

SINK = """\
#include "sink.h"
#include "sinks.h"
#include "text.h"

#include <stdlib.h>

struct counts {
	unsigned tasks;
};

static struct counts *counts_of(const struct xs_process *process)
{
	return process->sink[XS_SINK_TOY];
}

static bool wanted(const struct xs_run *run)
{
	(void)run;
	return true;
}

static bool open_counts(struct xs_process *process)
{
	process->sink[XS_SINK_TOY] = calloc(1, sizeof(struct counts));
	return process->sink[XS_SINK_TOY];
}

static void add_tasks(struct xs_track *track, const struct xs_task *tasks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		counts_of(track->process)->tasks += tasks[i].end >= tasks[i].start;
}

static void add_slice(struct xs_process *process, const struct xs_slice *slice)
{
	counts_of(process)->tasks += slice->kind == XS_SPAN_TASK && !slice->unfinished;
}

static bool close_counts(struct xs_process *process, enum xs_end end, int status)
{
	(void)end, (void)status;
	xs_tell("toy: %u tasks\\n", counts_of(process)->tasks);
	free(counts_of(process));
	return true;
}

const struct xs_sink xs_toy_sink = {
	.wanted = wanted,
	.open = open_counts,
	.tasks = add_tasks,
	.slice = add_slice,
	.close = close_counts,
};
"""


def git(copy, *args):
    command = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "core.excludesFile=/dev/null", *args]
    return subprocess.run(command, cwd=copy, check=True, capture_output=True, text=True).stdout


def edit(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, f"{path}: {old}"
    path.write_text(text.replace(old, new))


@pytest.fixture
def copy(tmp_path):
    """The tree as it is, as a checkout of its own."""
    listed = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, capture_output=True)
    if listed.returncode:
        pytest.skip("no git checkout: which files belong to it?")
    where = tmp_path / "tree"
    for name in os.fsdecode(listed.stdout).split("\0"):
        if name and (ROOT / name).is_file():
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, where / name)
    git(where, "init", "-q")
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", "as it was")
    return where


def build_drain(copy):
    off = [f"-D{option}=disabled" for option in ("opencl", "level_zero", "cuda", "musl", "tests")]
    for command in (["meson", "setup", "-Doptimization=0", *off, "build"], ["ninja", "-C", "build", "writer/xstrace-drain"]):
        result = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stdout[-3000:]
    return copy / "build/writer/xstrace-drain"


@pytest.mark.long
def test_a_sink_is_a_file_a_row_and_its_name_in_the_list_of_sources(xstrace, copy):
    (copy / "writer/sinks/toy.c").write_text(SINK)
    edit(copy / "writer/sinks/sinks.h", "SINK(XS_SINK_STACKS, stacks)", "SINK(XS_SINK_STACKS, stacks) SINK(XS_SINK_TOY, toy)")
    edit(copy / "writer/sinks/meson.build", "'timing_text.c'", "'timing_text.c', 'toy.c'")
    drain = build_drain(copy)
    changed = git(copy, "status", "--porcelain", "-uall").splitlines()
    assert sorted(changed) == [" M writer/sinks/meson.build", " M writer/sinks/sinks.h", "?? writer/sinks/toy.c"]

    run = xstrace.start("--chrome-itt-logging", "itt_tasks", [1000, 2])
    os.kill(run.drain, signal.SIGKILL)
    run.wait()
    expected = expected_lines(run.out)[None, "expected", "tasks", None]
    assert expected == 2000
    result = subprocess.run([drain, "--recover", run.dir], cwd=run.cwd, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert f"toy: {expected} tasks\n" in result.stderr
    run.collect()
    assert len(run.trace.tasks) == expected  # and the first sink has missed nothing


# ---- a backend ----

TOY = ROOT / "tests/toy_backend"
ROW = """\
	[XS_SOURCE_TOY] = {
		.label = "TOY",
		.names = xs_toy_names,
		.name_count = &xs_toy_count,
		.arguments = &xs_toy_arguments,
		.memory = MEMORY,
		.layout = { 11, 19, 11, 11, 2, "Queued" },
	},
"""


def install_toy_api(where):
    """The API as its vendor would: its header and its loader."""
    where.mkdir()
    shutil.copy(TOY / "api/toy_api.h", where)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", where / "libtoy.so", TOY / "api/toy.c", "-ldl"], check=True)
    return where


def add_toy(copy):
    shutil.copytree(TOY / "added", copy, dirs_exist_ok=True)
    edit(copy / "common/record.h", "\tXS_SOURCE_COUNT,", "\tXS_SOURCE_TOY,\n\tXS_SOURCE_COUNT,")
    edit(copy / "writer/meaning/backends.c", "TABLES(mpi);", "TABLES(mpi);\nTABLES(toy);")
    edit(copy / "writer/meaning/backends.c", "\t[XS_SOURCE_MPI] = {", f"{ROW}\t[XS_SOURCE_MPI] = {{")
    edit(copy / "launcher/environment.c", "XS_ENV_CUDA_INJECTION },", 'XS_ENV_CUDA_INJECTION },\n\t{ "TOY_INJECTION", NULL },')
    with open(copy / "meson_options.txt", "a") as options:
        options.write("option('toy', type: 'feature', value: 'auto', description: 'toy backend')\n")


def build_with_toy(copy, api):
    off = [f"-D{option}=disabled" for option in ("opencl", "level_zero", "cuda", "musl")]
    found = [f"-Dc_args=-I{api}", f"-Dc_link_args=-L{api}", "-Dtoy=enabled"]
    parts = ["launcher/xstrace", "writer/xstrace-drain", "collector/libxstrace.so", "tests/apps/toy_calls"]
    for command in (["meson", "setup", "-Doptimization=0", *off, *found, "build"], ["ninja", "-C", "build", *parts]):
        result = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stdout[-3000:]
    return copy / "build"


@pytest.mark.long
def test_a_backend_is_five_files_and_four_edited_ones(copy, tmp_path):
    signal.alarm(400)  # most of the tree is built
    api = install_toy_api(tmp_path / "api")
    add_toy(copy)
    changed = git(copy, "status", "--porcelain", "-uall").splitlines()
    assert sorted(changed) == [
        " M common/record.h",
        " M launcher/environment.c",
        " M meson_options.txt",
        " M writer/meaning/backends.c",
        "?? gpu/toy/toy.c",
        "?? gpu/toy/xs_toy.h",
        "?? interpose/toy.toml",
        "?? tests/apps/toy_calls.c",
        "?? tests/test_toy.py",
    ]
    build = build_with_toy(copy, api)
    env = {**os.environ, "XSTRACE_BUILD": str(build), "LD_LIBRARY_PATH": str(api)}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/test_toy.py"], cwd=copy, env=env, capture_output=True, text=True, timeout=110
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert "2 passed" in result.stdout

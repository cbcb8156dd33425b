"""packaging/Containerfile, each of its instructions, in roots of Debian's in place of images: with --clients, as it downloads and builds."""

import json
import re
import shutil
import subprocess

from conftest import APPS, ROOT, allow, check_trace, root_only
from others import clean_root, inside, needs_clients

pytestmark = [needs_clients, root_only]
BUILDING = 1800  # seconds


def instructions():
    text = re.sub(r"^#.*\n", "", (ROOT / "packaging/Containerfile").read_text(), flags=re.M).replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line]


class Image:
    """What an engine would make of it: a root, its environment, its entry point. ENV, COPY and ENTRYPOINT in the forms that the file has."""

    def __init__(self, place):
        self.root, self.env = clean_root(place, "bookworm")  # debian:12
        self.entry = []

    def run(self, command):
        done = inside(self.root, "sh", "-c", command, env=self.env)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done

    def set(self, assignment):
        name, value = assignment.split("=", 1)
        self.env[name] = re.sub(r"\$(\w+)", lambda found: self.env[found[1]], value)


def build(place):
    stages, image = {}, None
    for instruction, rest in instructions():
        words = rest.split()
        if instruction == "FROM":
            assert words[0] == "debian:12"
            image = Image(place / str(len(stages)))
            stages[words[-1] if "AS" in words else len(stages)] = image
        elif instruction == "RUN":
            image.run(rest)
        elif instruction == "COPY" and words[0].startswith("--from="):
            shutil.copytree(stages[words[0][7:]].root / words[1][1:], image.root / words[2][1:], symlinks=True)
        elif instruction == "COPY":
            assert words[0] == "."
            subprocess.run([ROOT / "packaging/tree", image.root / words[1][1:]], check=True)
        elif instruction == "ENV":
            image.set(rest)
        else:
            assert instruction == "ENTRYPOINT"
            image.entry = json.loads(rest)
    return image


def test_the_container_file_is_built_and_traces(tmp_path):
    """A program from outside is traced; the tools read its trace; PoCL is seen."""
    allow(BUILDING)
    image = build(tmp_path)
    work = image.root / "work"
    work.mkdir()
    for name in ("itt_tasks", "gemm"):
        shutil.copy(APPS / name, work)
    entry = " ".join(image.entry)
    image.run(f"cd /work && {entry} --chrome-itt-logging --output-dir-path itt ./itt_tasks 3")
    image.run(f"cd /work && {entry} --chrome-kernel-logging --output-dir-path cl ./gemm")
    assert "tasks 3" in image.run("xstrace-summary /work/itt/*.json").stdout
    assert "kernels   multiply" in image.run("xstrace-summary /work/cl/*.json").stdout
    for path in work.glob("*/*.json"):
        assert check_trace(path, strict=True) == []
    assert image.run(f"{entry} --device-list").stdout.startswith("Device #0: ")

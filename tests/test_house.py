"""The form of sources and documents. Which part may know of which: test_layers.py."""

import re
import shutil
import subprocess

import pytest

from conftest import ROOT

FOLDERS = ("common", "collector", "itt_collector", "interpose", "gpu", "writer", "merge", "launcher", "devices", "stacks", "attach", "replay", "python")

def sources(folder):
    return sorted(p for p in (ROOT / folder).rglob("*.[ch]"))


def test_one_file_of_the_drain_process_knows_the_apis():
    """What differs from API to API is a row of writer/meaning/backends.c; code that asks for one API would have to be found for the next."""
    named = re.compile(r"XS_SOURCE_(?!COUNT\b|NONE\b)\w+|\"(?:L0|CL|CU)\"")
    wrong = [
        f"{path.relative_to(ROOT)}: {word}"
        for folder in ("writer", "merge")
        for path in sources(folder)
        if path != ROOT / "writer/meaning/backends.c"
        for word in named.findall(path.read_text())
    ]
    assert not wrong, "\n".join(wrong)


AT_THE_TOP = set(
    ".clang-format .dockerignore .gitignore CHANGELOG.md LICENSE README.md VERSION meson.build meson_options.txt pyproject.toml ruff.toml".split()
)


@pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="no clone")
def test_nothing_that_a_run_wrote_is_kept():
    """Results lie in the working directory, which is often the clone's."""
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    assert {name for name in kept if name and "/" not in name} <= AT_THE_TOP


LINES_MAX = 60  # of a function


def functions(text):
    """Name and lines of each function of a C file, as .clang-format lays them out."""
    for found in re.finditer(r"^(?:\w[^\n;{}]*\n)(?:[\t ][^\n;{}]*\n)*\{\n(?:.*\n)*?\}\n", text, re.M):
        if name := re.search(r"(\w+)\(", found[0]):
            yield name[1], found[0].count("\n")


def test_functions_fit_a_screen():
    long = [
        f"{path.relative_to(ROOT)}: {name} has {lines} lines"
        for folder in FOLDERS
        for path in sources(folder)
        for name, lines in functions(path.read_text())
        if lines > LINES_MAX
    ]
    assert not long, "\n".join(long)


def test_what_a_function_is():
    text = "struct a {\n\tint b;\n};\n\nstatic int c(int d,\n\t     int e)\n{\n\treturn d;\n}\n\nvoid f(void)\n{\n" + "\tg();\n" * 60 + "}\n"
    assert list(functions(text)) == [("c", 5), ("f", 63)]
    assert sum(1 for path in sources("collector") for _ in functions(path.read_text())) > 150


# ---- documents ----

PAGES = sorted((ROOT / "docs").rglob("*.md")) + [ROOT / "README.md"]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
GENERATED = {"FIGURES.md"}  # bench/run writes it


def without_code(text):
    """The lines of a page, numbered from 1, without those between two fences."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def too_long(text):
    """Where a page cannot be read in a terminal: lines over 120 columns, cells of tables over 200 characters."""
    for number, line in without_code(text):
        if not line.startswith("|"):
            if len(line) > 120:
                yield f"{number}: {len(line)} columns"
        elif (longest := max(len(cell.strip()) for cell in re.split(r"(?<!\\)\|", line))) > 200:
            yield f"{number}: a cell of {longest} characters"


def anchors(text):
    """What a link to a heading of the page is called, as GitHub does it."""
    found = set()
    for _, line in without_code(text):
        if heading := re.match(r"#+ (.*)", line):
            name = re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
            number = next(n for n in range(1000) if (f"{name}-{n}" if n else name) not in found)
            found.add(f"{name}-{number}" if number else name)
    return found


def links(text):
    """Relative links and pictures: path, anchor."""
    plain = re.sub(r"`[^`]*`", "", "\n".join(line for _, line in without_code(text)))
    for target in re.findall(r"\]\(([^)\s]+)\)", plain):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield path, anchor


def broken(page, text):
    for path, anchor in links(text):
        target = page.parent / path if path else page
        if not target.exists():
            yield f"{path}: not there"
        elif anchor and anchor not in anchors(text if target == page else target.read_text()):
            yield f"{path}#{anchor}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_pages_fit_a_terminal(page):
    if page.name not in GENERATED:
        assert not list(too_long(page.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page):
    assert not list(broken(page, page.read_text()))


def test_every_page_is_in_the_index():
    """docs/README.md lists the documents by reader."""
    index = ROOT / "docs/README.md"
    listed = {path for path, _ in links(index.read_text())}
    assert {str(page.relative_to(index.parent)) for page in PAGES[:-1]} - listed == {"README.md"}


def test_what_is_wrong_in_a_page_is_found():
    page = ROOT / "docs/README.md"
    text = "# One: a `b`\n\n" + "x" * 121 + "\n| a \\| " + "y" * 200 + " | z |\n```\n" + "x" * 121 + "\n```\n"
    assert list(too_long(text)) == ["3: 121 columns", "4: a cell of 205 characters"]
    text += "[a](#one-a-b) [b](#two) [c](NONE.md) [d](RING.md#order) [e](RING.md#none) ![f](https://example.org/x) `[g](h)`\n"
    assert list(broken(page, text)) == ["#two: no such heading", "NONE.md: not there", "RING.md#none: no such heading"]


@pytest.mark.skipif(not shutil.which("clang-format"), reason="no clang-format")
def test_c_is_formatted():
    """.clang-format, by the version that scripts/setup installs."""
    files = [path for folder in (*FOLDERS, "bench", "tests") for path in sources(folder)]
    result = subprocess.run(["clang-format", "--dry-run", "-Werror", *files], cwd=ROOT, capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", result.stderr, re.M)))
    assert result.returncode == 0, f"clang-format -i {' '.join(wrong)}"


@pytest.mark.skipif(not shutil.which("ruff"), reason="no ruff")
def test_python_has_no_unused_names():
    result = subprocess.run(["ruff", "check", "--no-cache", "-q", "--output-format=concise", "."], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr

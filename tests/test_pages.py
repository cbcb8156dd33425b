"""The cookbook and the tours: each command is run, and what they say is printed is printed (tests/pages.py)."""

import os
import re
import subprocess

import pages
import pytest
from pages import IN_A_CLONE, UNTIL, Reader, installed, missing, not_printed, sections, wrong_claim

from conftest import ROOT
from others import needs_clients

DOCS = ROOT / "docs"
COOKBOOK = sections(DOCS / "COOKBOOK.md")
TOURS = sorted((DOCS / "tours").glob("*.md"))
PAGES = [DOCS / "COOKBOOK.md", *TOURS]
IN_SOFTWARE = "CUDA in\n> software"


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    return installed(tmp_path_factory.mktemp("installed"))


def commands(parts):
    return "".join(block.text for part in parts for block in part.blocks if block.kind == "sh" and block.title != IN_A_CLONE)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("recipe", COOKBOOK[1:], ids=[recipe.title.split(".")[0] for recipe in COOKBOOK[1:]])
def test_recipe(recipe, prefix, tmp_path):
    """With the programs that it needs, as the page builds them."""
    built = {re.search(r"-o (\S+)", line)[1]: line for line in commands(COOKBOOK[:1]).splitlines()}
    wanted = [line for name, line in built.items() if f"./{name} " in commands([recipe])]
    if reason := missing("\n".join(wanted) + commands([recipe])):
        pytest.skip(reason)
    reader = Reader(tmp_path, prefix)
    reader.run("\n".join(wanted))
    reader.follow(recipe.blocks)


@pytest.mark.long
@pytest.mark.parametrize("page", TOURS, ids=[page.stem for page in TOURS])
def test_tour(page, prefix, tmp_path):
    """From its beginning to its end; parts whose software is not here are left out."""
    reader, left_out = Reader(tmp_path, prefix), []
    for part in sections(page):
        if reason := missing(commands([part])):
            left_out.append(reason)
        else:
            reader.follow(part.blocks)
    if left_out and len(left_out) == sum(bool(commands([part])) for part in sections(page)):
        pytest.skip(", ".join(left_out))


AFTERWARDS = """
./train.py
xstrace --doctor ./train.py
cc saves_itself.c $(pkg-config --cflags --libs xstrace)
./a.out
"""


@pytest.fixture(scope="module")
def got(tmp_path_factory):
    """What is printed when one gets it as the tours say, in a clone and a home of one's own, and uses it."""
    place = tmp_path_factory.mktemp("got")
    clone, home = place / "xstrace", place / "home"
    subprocess.run([ROOT / "packaging/tree", clone], check=True)
    home.mkdir()
    tours = (sections(DOCS / f"tours/{name}.md") for name in ("README", "LIBRARY"))
    (get, leave), (library,) = ([b.text for part in parts for b in part.blocks if b.title == IN_A_CLONE] for parts in tours)
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", **{name: value for name, value in os.environ.items() if name.startswith("PIP_")}}
    words = ["bash", "-eu", "-c", get + library + leave + AFTERWARDS]
    done = subprocess.run(words, cwd=clone, env=env, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_clients
def test_getting_it(got):
    assert "xstrace works here." in got and "3 events" in got


# ---- the pages themselves ----


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_what_stands_in_a_page_is_run(page):
    """No code that is not of a kind that pages.py knows; output stands behind what prints it; CUDA is told to be software."""
    text = page.read_text()
    assert not re.findall(r"^(?:    |\t)\S", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M), "indented code is not run"
    for part in sections(page):
        kinds = [block.kind if block.kind in ("sh", "text", "claim") else block.title and "file" for block in part.blocks]
        assert None not in kinds and "" not in kinds
        assert all("sh" in kinds[:at] for at, kind in enumerate(kinds) if kind in ("text", "claim"))
    assert "./app" not in commands(sections(page)) or IN_SOFTWARE in text


def test_recipes_have_one_form():
    """Symptom, command, output, advice; the table of symptoms leads to each of them."""
    assert len(COOKBOOK) >= 13
    for number, recipe in enumerate(COOKBOOK[1:], 1):
        kinds = {block.kind for block in recipe.blocks}
        assert recipe.title.startswith(f"{number}. ") and {"sh", "text"} <= kinds and "**What to do.**" in recipe.text
    linked = {int(number) for number in re.findall(r"\[(\d+)\]\(#", COOKBOOK[0].text)}
    assert linked == set(range(1, len(COOKBOOK)))


def test_what_counts_as_printed():
    printed = "kernel  work   3 us\n  -12.5 %  (train.py:59)\nlast\n"
    assert not_printed("kernel work 17.25 ms\n…\n+1 % (train.py:59)\nla…", printed) is None
    assert not_printed("last\nkernel work 3 us", printed) == "kernel work 3 us"  # in this order
    assert not_printed("kernel other 3 us", printed) == "kernel other 3 us"
    assert not_printed("kernel work 3", printed) == "kernel work 3"
    assert not_printed("-12.5 % (train.py:58)", printed) == "-12.5 % (train.py:58)"
    (claim,) = pages.blocks("<!-- claim: ([-\\d.]+) % :: -20..0 -->")
    assert wrong_claim(claim, printed) is None and "12.5, not" in wrong_claim(claim, "12.5 %") and "nothing" in wrong_claim(claim, "")


def test_a_command_that_fails_is_found(prefix, tmp_path):
    reader = Reader(tmp_path, prefix)
    with pytest.raises(AssertionError, match="status 1 of\nfalse"):
        reader.run("false\ntrue")
    with pytest.raises(AssertionError):  # no server, no browser
        reader.run(f"sleep 1 {UNTIL}")

"""The site that scripts/site makes of docs/: whole, without a link that leads nowhere, and all of it on the disk. Without mkdocs: skipped."""

import html.parser
import os
import re
import shutil
import subprocess
import urllib.parse
from pathlib import Path

import perfetto_ui
import pytest

from conftest import ROOT

MKDOCS = ROOT / ".venv-site/bin/mkdocs"
DOCS = ROOT / "docs"
NARROW = 360
PICTURE_BYTES = 150_000

needs_mkdocs = pytest.mark.skipif(not MKDOCS.exists(), reason="no mkdocs; scripts/setup --site installs it")
needs_browser = pytest.mark.skipif(not any(map(shutil.which, perfetto_ui.BROWSERS)), reason="no chromium")


def build(source, place):
    command = [MKDOCS, "build", "--strict", "--config-file", source / "packaging/site/mkdocs.yml", "--site-dir", place]
    return subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    made = build(ROOT, place)
    assert made.returncode == 0 and "WARNING" not in made.stderr, made.stderr
    return place


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


class Page(html.parser.HTMLParser):
    """What a page loads, where its links lead, and what can be linked to."""

    LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}

    def __init__(self, path):
        super().__init__()
        self.path, self.loads, self.links, self.ids = path, [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.add(attrs.get("id"))
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if (name := self.LOADS.get(tag)) and attrs.get(name) and attrs.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(attrs[name])

    def target(self, link):
        path, _, anchor = link.partition("#")
        return (self.path.parent / urllib.parse.unquote(path)).resolve() if path else self.path, urllib.parse.unquote(anchor)


def outside(link):
    return re.match(r"[a-z]+:|//", link)


@needs_mkdocs
def test_all_is_there_and_leads_somewhere(site, pages):
    named = {str(path.relative_to(site)) for path in pages}
    wanted = {str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.rglob("*.md") if path.name != "README.md"}
    assert wanted | {"index.html", "documents.html", "tours/index.html", "examples/index.html", "changelog.html"} <= named
    wrong = [f"{path}: loads {load}" for path, page in pages.items() for load in page.loads if outside(load)]
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its links begin at the root of a server
        for link in [*page.links, *page.loads]:
            target, anchor = page.target(link)
            if not outside(link) and not target.is_file():
                wrong.append(f"{path}: {link} is not there")
            elif not outside(link) and anchor and target in pages and anchor not in pages[target].ids:
                wrong.append(f"{path}: {link} has no such anchor")
    for path in site.rglob("*.css"):
        wrong += [f"{path}: {found}" for found in re.findall(r"url\([\"']?https?:[^)]*\)|@import[^;]*https?:[^;]*", path.read_text())]
    assert not wrong, "\n".join(wrong)


@needs_mkdocs
def test_each_page_is_in_the_navigation(site, pages):
    """By the sections of docs/README.md; no page is reached by search alone."""
    front = site / "index.html"
    tabs = {pages[front].target(link)[0] for link in pages[front].links} & pages.keys()
    reached = tabs | {page.target(link)[0] for page in map(pages.get, tabs) for link in page.links if not outside(link)}
    assert {path for path in pages if path.name != "404.html"} <= reached


@needs_mkdocs
def test_a_broken_link_is_an_error(tmp_path):
    tree = tmp_path / "tree"
    for name in ("docs", "packaging/site", "include"):
        shutil.copytree(ROOT / name, tree / name)
    for name in ("README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    with (tree / "docs/WORDS.md").open("w") as page:
        page.write("# Words\n\n[a](NONE.md) [b](RING.md#none)\n")
    made = build(tree, tmp_path / "site")
    assert made.returncode != 0 and "NONE.md" in made.stderr and "#none" in made.stderr and "WORDS.md" in made.stderr


@pytest.fixture(scope="module")
def browser():
    try:
        made = perfetto_ui.Browser(1300, 900)
    except perfetto_ui.Unavailable as error:
        pytest.skip(str(error))
    yield made
    made.close()


def opened(browser, path):
    browser.command("Page.navigate", url=path.as_uri())
    browser.run("new Promise(done => document.readyState === 'complete' ? done(1) : addEventListener('load', () => done(1)))")


@needs_mkdocs
@needs_browser
def test_search_from_the_disk(site, browser):
    """The pages are files: no server, no network; what is found is the page that tells of it."""
    opened(browser, site / "index.html")
    browser.run("document.querySelector('[data-md-component=search-query]').focus()")
    browser.command("Input.insertText", text="watchdog")
    found = "[...document.querySelectorAll('.md-search-result__item a')].map(a => a.href)"
    results = browser.wait(lambda: browser.run(found), "what is found")
    assert any("STACKS.html" in link for link in results)
    loaded = browser.run("performance.getEntriesByType('resource').map(one => one.name)")
    assert [name for name in loaded if not name.startswith(("file:", "data:", "about:"))] == []


@needs_mkdocs
@needs_browser
def test_pages_fit_a_telephone(site, browser):
    browser.command("Emulation.setDeviceMetricsOverride", width=NARROW, height=700, deviceScaleFactor=1, mobile=False)
    wide = []
    for path in sorted(site.rglob("*.html")):
        opened(browser, path)
        if browser.run("document.documentElement.scrollWidth > innerWidth"):
            wide.append(path.name)
    assert not wide


@needs_mkdocs
def test_a_folder_with_something_else_is_left_alone(tmp_path):
    """mkdocs empties the folder that it writes to."""
    (tmp_path / "thesis.txt").write_text("years of work")
    made = subprocess.run([ROOT / "scripts/site", tmp_path], capture_output=True, text=True)
    assert made.returncode == 1 and made.stderr.count("\n") == 1 and "neither empty nor a site" in made.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_pictures_are_small_and_used():
    """scripts/pictures makes them."""
    text = "".join(page.read_text() for page in [*DOCS.rglob("*.md"), ROOT / "README.md"])
    for path in [*DOCS.rglob("*.png")]:
        assert path.stat().st_size < PICTURE_BYTES and f"{path.name})" in text, path
    made = {Path(name).name for name in re.findall(r"pictures/(\w+)\.png", text)}
    assert made == {path.stem for path in (DOCS / "pictures").glob("*.png")}

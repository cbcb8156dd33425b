"""The page of xstrace-report and its command: hostile names, bad inputs, a real browser."""

import html
import html.parser
import json
import os
import re
import subprocess
import sys

import perfetto_ui
import pytest

from conftest import ROOT
from planned import MS, PLANS, US, Plan, busy_device, nothing, outlier_steps

pytest.importorskip("duckdb")

SCRIPT = ROOT / "scripts/xstrace-report"
VOID = {"meta", "br", "link", "img", "input", "hr"}
HOSTILE = [
    "</title></style></script><script>document.title='stolen'</script>",
    '"><img src=x onerror="document.title=\'stolen\'">',
    "' onmouseover='x' ']]> <!-- ",
    "it's'); drop table slices; --",
    "$name {depth} {name} {0} %s ${x} \\",
    "\x1b[31mred\x1b[0m \x00 \n\r\t \u202e\u2066gnp.exe \ud800",
    "m" * (1 << 20),
    "",
]


def xstrace_report(*args, cwd, status=0, **more):
    """Runs the command; the CompletedProcess."""
    result = subprocess.run([sys.executable, SCRIPT, *map(str, args)], cwd=cwd, capture_output=True, text=True, **more)
    assert result.returncode == status, result.stderr
    assert "Traceback" not in result.stderr
    return result


class Checker(html.parser.HTMLParser):
    """What is wrong with a page: tags that do not match, names given twice, anything that is loaded or run."""

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.ids, self.links, self.text, self.scripts = [], [], set(), [], [], 0
        self.feed(text)
        self.close()
        self.wrong += [f"{tag} is not closed" for tag in self.open]
        self.wrong += [f"#{link} leads nowhere" for link in self.links if link not in self.ids]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.wrong.append(f"{tag} has an attribute twice")
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "src", "srcset", "action", "xlink:href", "data"):
                self.wrong.append(f"{tag} has {name}")
            if name == "href" and value.startswith("#"):
                self.links.append(value[1:])
            elif name == "href" and not (
                tag == "a" and value.startswith("https://ui.perfetto.dev/#!/?url=http%3A%2F%2F127.0.0.1%3A9001%2F")
            ):
                self.wrong.append(f"{tag} leads to {value}")
            if name == "id" and value in self.ids:
                self.wrong.append(f"two of {value}")
            if name == "id":
                self.ids.add(value)
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


def checked(text):
    page = Checker(text)
    assert page.wrong == [] and page.scripts == 1
    assert "@import" not in text and "url(" not in text
    return " ".join("".join(page.text).split())


def hostile(path, names=HOSTILE):
    """A trace in which all that has a name has such a one."""
    plan = Plan()
    busy_device(plan, 20 * MS)
    for number, name in enumerate(names):
        plan.host(f"app::{name}", number * 2 * MS, (number + 1) * 2 * MS)
        plan.launch(30 * MS + number * US, 30 * MS + number * US + 500, ((31 + number) * MS, (32 + number) * MS), name=name)
        plan.counter(f"memory {name}", number * MS, number)
        plan.host(f"clFinish{name}", 50 * MS + number * MS, 51 * MS + number * MS, args={"result": name})
    for event in plan.events:
        if event["ph"] == "M":
            event["args"]["name"] += names[0] + names[5]
    plan.write(path)


def test_hostile_names_are_text(tmp_path):
    hostile(tmp_path / "<b>&'\"\x1b.json")
    said = xstrace_report("-o", "r.html", "--json", "r.data", *tmp_path.glob("*.json"), cwd=tmp_path)
    assert "\x1b" not in said.stdout + said.stderr
    text = (tmp_path / "r.html").read_text()
    assert "\x1b" not in text and "\u202e" not in text and "\x00" not in text and len(text) < 1 << 20
    shown = checked(text)
    assert "document.title='stolen'" in shown and "drop table slices; --" in shown
    data = json.loads((tmp_path / "r.data").read_text())
    assert {kernel["name"] for kernel in data["kernels"]} >= {"k", *HOSTILE[:4]}


def test_a_hostile_name_of_a_step_is_no_sql(tmp_path):
    plan = Plan()
    for n in range(20):
        plan.host("it's'); drop table slices; --\x1b[2J\u202e", n * MS, n * MS + (MS if n else MS // 4) - US)
        plan.host("app::rest", n * MS, n * MS + US)
    plan.host("it's'); drop table slices; --\x1b[2J\u202e", 30 * MS, 50 * MS)
    for event in plan.events:
        event["name"] = event["name"].replace("it's", "app::it's")
    plan.write(tmp_path / "t.json")
    data = json.loads(xstrace_report("--json", "-", "t.json", cwd=tmp_path).stdout)
    (found,) = data["findings"]
    assert found["id"] == "outlier-steps" and found["n"] == 1 and "it''s''); drop" in found["sql"]
    page = xstrace_report("-o", "-", "t.json", cwd=tmp_path).stdout
    assert "\x1b" not in page and "\u202e" not in page
    sql = html.unescape(re.search(r"<pre>(.*?)</pre>", page, re.DOTALL)[1])
    (answer,) = json.loads(
        subprocess.check_output([sys.executable, ROOT / "scripts/xstrace-query", "--json", "t.json"], input=sql, cwd=tmp_path, text=True)
    )
    assert answer["n"] == 1


@pytest.mark.long
def test_all_findings_on_one_page(tmp_path):
    """Every kind of section and finding; the same by processes of its own as in one; a directory below another."""
    for id, plan in PLANS.items():
        (tmp_path / "all" / id).mkdir(parents=True)
        plan(tmp_path / "all" / id)
    (tmp_path / "all/notes.json").write_text("{}")
    said = xstrace_report("-o", "r.html", "--json", "r.data", "all", cwd=tmp_path)
    assert "notes.json" in said.stderr and len(said.stdout.splitlines()) >= 15
    shown = checked((tmp_path / "r.html").read_text())
    data = json.loads((tmp_path / "r.data").read_text())
    single = PLANS.keys() - {"imbalance", "communication"}  # of ranks that are no job
    assert {finding["id"] for finding in data["findings"]} >= single
    assert all(finding["title"] in shown and finding["text"] in shown for finding in data["findings"])
    assert len(data["processes"]) == len(single) + 8
    # the order of what is named, and how, changes nothing
    again = xstrace_report("--json", "-", *sorted(tmp_path.glob("all/*/*.json"), reverse=True), cwd=tmp_path)
    assert {**json.loads(again.stdout), "unusable": data["unusable"]} == data


# ---- the command ----


@pytest.mark.long
def test_what_cannot_be_read_is_one_line(tmp_path):
    nothing(tmp_path)
    (tmp_path / "empty.json").touch()
    (tmp_path / "none").mkdir()
    (tmp_path / "blank.json").write_text('{"traceEvents":[]}')
    before = (tmp_path / "t.json").read_bytes()
    for args, what in (
        (["gone.json"], "gone.json"),
        (["none"], "no traces"),
        (["empty.json"], "empty.json"),
        (["blank.json"], "blank.json"),
        (["-o", "nowhere/r.html", "t.json"], "nowhere"),
        (["-o", "t.json", "t.json"], "t.json"),
        (["--json", tmp_path / "t.json", "."], "t.json"),
        (["-o", "/dev/full", "t.json"], "/dev/full"),
        (["--memory-limit", "1K", "t.json"], "64M"),
        (["--scheduler", "nobody", "t.json"], "--scheduler"),
    ):
        result = xstrace_report(*args, cwd=tmp_path, status=2)
        assert what in result.stderr and result.stdout == "", args
    assert (tmp_path / "t.json").read_bytes() == before and not (tmp_path / "report.html").exists()
    result = xstrace_report("empty.json", "t.json", cwd=tmp_path, status=1)
    assert "empty.json" in result.stderr and "empty.json" in checked((tmp_path / "report.html").read_text())


def test_cut_traces_and_pipes(tmp_path):
    outlier_steps(tmp_path)
    text = (tmp_path / "t.json").read_text()
    (tmp_path / "cut.json").write_text(text[: len(text) * 2 // 3])
    data = json.loads(xstrace_report("--json", "-", "cut.json", cwd=tmp_path).stdout)
    assert "incomplete-trace" in {finding["id"] for finding in data["findings"]}
    shown = checked(xstrace_report("-o", "-", "t.jso[n]", cwd=tmp_path).stdout)
    assert "Some steps take much longer" in shown and "app::save" in shown
    # who reads no further is no error
    piped = subprocess.run(f"{sys.executable} {SCRIPT} -o - t.json | head -c 100", shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert piped.stderr == "" and piped.stdout.startswith("<!DOCTYPE html>")


def test_help_has_an_example(tmp_path):
    said = xstrace_report("--help", cwd=tmp_path).stdout
    assert "xstrace-report -o report.html" in said and "--memory-limit" in said


# ---- a browser ----

ERRORS = """window.errors = []; window.addEventListener('error', e => errors.push(String(e.message)));
document.addEventListener('securitypolicyviolation', e => errors.push(e.violatedDirective + ' ' + e.blockedURI));"""


@pytest.fixture
def browser():
    try:
        perfetto_ui.browser(), perfetto_ui.devtools()
    except perfetto_ui.Unavailable as missing:
        pytest.skip(str(missing))
    one = perfetto_ui.Browser(1280, 1600)
    yield one
    one.close()


def opened(browser, path):
    browser.command("Page.addScriptToEvaluateOnNewDocument", source=ERRORS)
    browser.command("Page.navigate", url=f"file://{path}")
    browser.wait(lambda: browser.run("document.readyState") == "complete" and browser.run("!!document.querySelector('main')"), "the page")


def test_a_browser_shows_it(tmp_path, browser):
    """No error, nothing loaded, nothing runs that a name holds; tables sort; the pictures have a size."""
    outlier_steps(tmp_path)
    hostile(tmp_path / "hostile.json", HOSTILE[:6])
    xstrace_report("-o", "r.html", "t.json", "hostile.json", cwd=tmp_path)
    opened(browser, tmp_path / "r.html")
    assert browser.run("errors") == []
    assert browser.run("document.title").startswith("xstrace report: ")
    assert browser.run("performance.getEntriesByType('resource').length") == 0
    assert browser.run("document.querySelectorAll('svg').length") >= 4
    assert browser.run("[...document.querySelectorAll('svg')].every(one => one.getBoundingClientRect().height > 5)")
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    column = "[...document.querySelectorAll('#calls ~ div tbody tr')].map(row => Number(row.cells[3].dataset.v))"
    times = browser.run(column)
    browser.run("document.querySelectorAll('#calls ~ div th button')[3].click()")
    browser.run("document.querySelectorAll('#calls ~ div th button')[3].click()")
    assert browser.run(column) == sorted(times) and len(times) > 5
    paper = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(paper)
    browser.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.run(paper) != light
    browser.screenshot(tmp_path / "page.png")
    assert os.path.getsize(tmp_path / "page.png") > 20_000


def test_the_text_needs_no_script(tmp_path, browser):
    outlier_steps(tmp_path)
    xstrace_report("-o", "r.html", "t.json", cwd=tmp_path)
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    browser.command("Page.navigate", url=f"file://{tmp_path / 'r.html'}")
    browser.wait(lambda: browser.run("document.readyState") == "complete" and browser.run("!!document.querySelector('footer')"), "the page")
    text = browser.run("document.body.innerText")
    assert "Some steps take much longer" in text and "app::save" in text and browser.run("document.querySelector('th button')") is None


def test_the_link_shows_the_place_in_perfetto(tmp_path, browser):
    """Perfetto's own UI, with the link's parameters, has the place in view."""
    try:
        perfetto_ui.ui_directory()
    except perfetto_ui.Unavailable as missing:
        pytest.skip(str(missing))
    outlier_steps(tmp_path)
    xstrace_report("-o", "r.html", "t.json", cwd=tmp_path)
    link = next(part for part in (tmp_path / "r.html").read_text().split('"') if part.startswith("https://ui.perfetto.dev/"))
    place = link.replace("&amp;", "&").partition("&")[2]
    server = perfetto_ui.Server((tmp_path / "t.json").read_bytes())
    try:
        browser.command("Page.navigate", url=f"{server.url}&{place}")
        browser.wait(
            lambda: browser.run("!!(self.app && self.app.trace && self.app.trace.engine) && !self.app.isLoadingTrace"), "the trace"
        )
        seen = (
            "[self.app.trace.timeline.visibleWindow.toTimeSpan().start, self.app.trace.timeline.visibleWindow.toTimeSpan().end].map(Number)"
        )
        browser.wait(lambda: browser.run(seen)[1] - browser.run(seen)[0] < 20 * MS, "the place")
        start, end = browser.run(seen)
    finally:
        server.close()
    # the longest step: five times as long as the others, after the first ten
    assert start <= 11 * MS and end >= 16 * MS and end - start < 10 * MS

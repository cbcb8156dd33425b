"""scripts/uniview.py, summary.py, categorize.py: unitrace's scripts by name and options."""

import functools
import gzip
import http.server
import json
import os
import re
import resource
import signal
import ssl
import subprocess
import sys
import tarfile
import threading
import urllib.request

import perfetto_ui
import pytest
from conftest import ROOT, wait_until
from others import needs_clients, the_port_of_perfetto
from test_analyze import GEMM, SAMPLES, STALLS
from made import NAMES, UNITRACE, kernel, normal_events, slice_, text_of_trace
from test_unitrace_scripts import VIEWER, script

SCRIPTS = ROOT / "scripts"

# ---- uniview.py ----


@pytest.fixture
def uniview(tmp_path):
    """Runs it with a browser that stores what it gets of the trace in `seen`; the Popen, to be ended by the test."""
    (tmp_path / "viewer.py").write_text(VIEWER)
    started = []

    def start(*args, browser=f"{sys.executable} {tmp_path}/viewer.py {tmp_path}/seen %s &"):
        env = os.environ | {"BROWSER": browser}
        command = [sys.executable, SCRIPTS / "uniview.py", *map(str, args)]
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    with the_port_of_perfetto():
        yield start
        for process in started:
            process.kill()
            process.communicate()


def ended(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_a_trace_is_shown(uniview, tmp_path):
    path = tmp_path / "a b.json"
    path.write_text(text_of_trace(normal_events(2000)))
    status, out, err = ended(uniview("-t", path))
    assert (status, err) == (0, "") and re.fullmatch(r"Open https://ui\.perfetto\.dev/#!/\?url=http://127\.0\.0\.1:9001/[-\w]{22}/a%20b\.json\n", out)
    wait_until(lambda: (tmp_path / "seen").read_bytes() == path.read_bytes())


@pytest.mark.parametrize("kind", ["cut", "packed"])
def test_what_the_page_cannot_read_is_made_readable(uniview, tmp_path, kind):
    import gzip

    text = text_of_trace(normal_events(50))
    path = tmp_path / ("t.json" if kind == "cut" else "t.json.gz")
    path.write_bytes(text[:-200].encode() if kind == "cut" else gzip.compress(text.encode()))
    before = path.read_bytes()
    status, out, err = ended(uniview("-t", path))
    assert status == 0 and path.read_bytes() == before and out.endswith("/t.json\n")
    assert err.count("\n") == (kind == "cut")
    wait_until(lambda: (tmp_path / "seen").exists() and json.loads((tmp_path / "seen").read_bytes())["traceEvents"])


def test_metrics_after_the_trace(uniview, tmp_path):
    """-m to the end: the link of a kernel leads to its charts."""
    trace, metrics, config = tmp_path / "t.json", tmp_path / "m.csv", tmp_path / "c.txt"
    trace.write_text(UNITRACE)
    metrics.write_text(SAMPLES)
    config.write_text('-m "XVE_STALL[%]" -y "%" --port 0')
    process = uniview("-t", trace, "-m", metrics, "-f", config)
    lines = [process.stdout.readline() for _ in range(3)]
    address = re.fullmatch(r"Open (http://localhost:(\d+)/)\?token=(.*)\n", lines[1])
    assert address, lines
    page = urllib.request.Request(address[1] + urllib.request.quote(GEMM) + "/1", headers={"Cookie": f"xstrace-metrics={address[3]}"})
    assert b"12.5" in urllib.request.urlopen(page, timeout=20).read()
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == -signal.SIGINT


@needs_clients
def test_the_page_itself_opens_it(uniview, tmp_path, monkeypatch):
    """Perfetto's UI, at its own address by a resolver's rule, in a browser: it is allowed to read the trace, and uniview.py ends."""
    signal.alarm(300)
    monkeypatch.setattr(perfetto_ui, "WAIT", 200)
    try:
        perfetto_ui.browser(), perfetto_ui.devtools()
        pages = functools.partial(http.server.SimpleHTTPRequestHandler, directory=perfetto_ui.ui_directory())
    except perfetto_ui.Unavailable as missing:
        pytest.skip(str(missing))
    certificate = tmp_path / "page.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=ui.perfetto.dev"]
    subprocess.run([*words, "-keyout", certificate, "-out", tmp_path / "signed.pem"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "signed.pem", certificate)
    path = tmp_path / "a b.json"
    path.write_text(text_of_trace(normal_events(200)))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), pages) as server:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )  # one that is silent stops no other
        threading.Thread(target=server.serve_forever, daemon=True).start()
        process = uniview("-t", path, browser="true %s")  # a real one reads it, below
        address = process.stdout.readline().split()[1]
        here = f"--host-resolver-rules=MAP ui.perfetto.dev 127.0.0.1:{server.server_port}"
        browser = perfetto_ui.Browser(options=["--ignore-certificate-errors", here])
        try:
            browser.command("Page.navigate", url=address)
            browser.wait(lambda: browser.run("!!(self.app && self.app.trace && !self.app.isLoadingTrace)"), "the trace")
            rows = browser.run(perfetto_ui.QUERY % json.dumps("select count(*) from slice"))
            assert browser.run("location.origin") == "https://ui.perfetto.dev" and "a b.json" in browser.run("document.title")
        finally:
            browser.close()
            server.shutdown()
    assert rows == [[sum(event["ph"] == "X" for event in normal_events(200))]]
    assert ended(process)[0] == 0


def test_stalls_need_no_config(uniview, tmp_path):
    trace, metrics = tmp_path / "t.json", tmp_path / "m.csv"
    trace.write_text(UNITRACE)
    metrics.write_text(STALLS)
    holder = __import__("socket").socket()
    holder.setsockopt(1, 2, 1)
    try:
        holder.bind(("127.0.0.1", 8000))
        holder.listen()
    except OSError:
        pass  # somebody else has it: the same to us
    status, out, err = ended(uniview("-t", trace, "-m", metrics, "-n", "3"))
    holder.close()
    assert status == 1 and "port 8000" in err and err.count("\n") == 1


def test_the_server_serves_one_file_to_one_page(uniview, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(UNITRACE)
    (tmp_path / "viewer.py").write_text("")
    process = uniview("-t", path)
    own = "/" + process.stdout.readline().partition("127.0.0.1:9001/")[2].strip()
    assert re.fullmatch(r"/[-\w]{22}/t\.json", own)

    def ask(where=own, **headers):
        request = urllib.request.Request("http://127.0.0.1:9001" + where, headers={"Host": "127.0.0.1:9001", **headers})
        try:
            return urllib.request.urlopen(request, timeout=20).status
        except urllib.error.HTTPError as error:
            return error.code

    assert ask("/viewer.py") == ask("/") == ask("/../t.json") == ask("/t.json") == 404  # other users guess names, too
    assert ask(Origin="https://example.org") == ask(Host="example.org:9001") == 403
    assert process.poll() is None
    assert ask(Origin="https://ui.perfetto.dev") == 200
    assert ended(process)[0] == 0


@pytest.mark.parametrize(
    "args, said",
    [
        (["-t", "none.json"], "none.json: no such file"),
        (["-t", "empty.json"], "empty"),
        (["-t", "t.json", "-f", "t.json"], "-f and -s need"),
        (["-t", "t.json", "-m", "m.csv"], "-f CONFIG is missing"),
        (["-t", "t.json", "-m", "t.json"], "t.json"),
    ],
)
def test_uniview_refuses(uniview, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.json").write_text(UNITRACE)
    (tmp_path / "m.csv").write_text(SAMPLES)
    (tmp_path / "empty.json").write_text("")
    status, out, err = ended(uniview(*args))
    assert status == 1 and said in err and err.count("\n") == 1 and not out


# ---- summary.py, categorize.py ----

REPORT = """
=== Device Timing Summary ===

                Total Execution Time (ns):            1000
    Total Device Time for L0 backend (ns):             900

== L0 Backend ==

                              Kernel,        Calls,            Time (ns),     Time (%%)
        "zeCommandListAppendBarrier",            8,                 %d,    48.777458
                       "gemm_kernel",            4,                  50,    47.076141
                   "foo<int, float>",            1,                   7,     1.000000

=== Kernel Properties ===

                              Kernel, Compiled, SIMD
                       "gemm_kernel",      JIT,   32

"""
BOX = """
****************************
*  Process ID : 7
****************************

           Function,  Calls,  Time (ns)
 oneCCL::allreduce,      3,         30

"""
SCHEMA = """
# kernels
[total if equals to]
L0_backend
[matmul.big if equals to]
gemm_kernel
[sync if starts with]
zeCommandList Append Barrier
[sum if ends with]
::allreduce
"""


def run(name, *args, **more):
    return subprocess.run([sys.executable, SCRIPTS / name, *map(str, args)], capture_output=True, text=True, timeout=60, **more)


@pytest.fixture
def reports(tmp_path):
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "r.1.txt").write_text(REPORT % 100 + BOX)
    (folder / "r.2.txt").write_text(REPORT % 300)
    (tmp_path / "s.ini").write_text(SCHEMA)
    return folder


SUMS = {"device_time": 1007, "device_calls": 2, "total_time": 900, "total_calls": 1, "sync_time": 200, "sync_calls": 8}
SUMS |= {"matmul_time": 50, "matmul_calls": 4, "sum_time": 30, "sum_calls": 3}


@pytest.mark.parametrize("place", ["directory", "tarball"])
@pytest.mark.parametrize("schema", ["ini", "json"])
def test_summary(reports, tmp_path, place, schema):
    if place == "tarball":
        with tarfile.open(tmp_path / "r.tgz", "w:gz") as tar:
            tar.add(reports, "r")
        reports = tmp_path / "r.tgz"
    if schema == "json":
        assert run("categorize.py", "--input", tmp_path / "s.ini", "--output", tmp_path / "s.json").returncode == 0
    done = run("summary.py", "--input", reports, "--schema", tmp_path / f"s.{schema}")
    assert json.loads(done.stdout) == SUMS and not done.stderr


@pytest.mark.parametrize("how, sync", [("min", 100), ("max", 300), ("median", 200), ("sum", 400), ("min+1", 200), ("max-1", 200)])
def test_aggregators(reports, tmp_path, how, sync):
    done = run("summary.py", "--input", reports, "--schema", tmp_path / "s.ini", "--aggregator", how)
    assert json.loads(done.stdout)["sync_time"] == sync


def test_summary_of_traces(tmp_path):
    events = NAMES + [kernel(f"gemm_kernel[SIMD8 {{{n}; 1; 1}} {{1; 1; 1}}]", 100 * n, 100 * n + 50) for n in range(1, 4)]
    events += [kernel("zeCommandListAppendBarrier", 500, 510), slice_("oneCCL::API::allreduce", 10, 30), slice_("other", 0, 1000)]
    (tmp_path / "t.json").write_text(text_of_trace(events))
    (tmp_path / "s.ini").write_text(SCHEMA)
    found = json.loads(run("summary.py", "--input", tmp_path / "t.json", "--schema", tmp_path / "s.ini").stdout)
    assert found["matmul_time"] == 150 and found["matmul_calls"] == 3 and found["sync_time"] == 10 and found["sum_time"] == 20
    assert found["device_time"] == 1000 + 160  # the span, and all work, which this schema does not know
    found = json.loads(run("summary.py", "--input", tmp_path / "t.json").stdout)
    assert found["matmul_time"] == 150 and found["total_time"] == 160 and found["wallclock_time"] == 1000 and found["allreduce_time"] == 20


# what is wrong with a trace: (the text that is, of a good one, the exit status, what a line says)
FAULTS = {
    "whole": (lambda text: text, 0, ""),
    "cut": (lambda text: text[: text.rindex("{")], 0, "t.json: was cut; what could be read counts"),
    "two traces": (lambda text: text + "\n" + text, 1, ": text behind the end of the trace; left out"),
    "damaged": (lambda text: text.replace('"other"', '"other" {{'), 1, "; left out"),
    "a comma too many": (lambda text: text.replace("}\n]", "},\n]"), 0, ""),
    "byte order mark": (lambda text: "\ufeff" + text, 0, ""),
}


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("place", ["t.json", "traces", "t.tgz"])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_sum_lacks_is_said(tmp_path, fault, place):
    """On stderr: the sums are those of what could be read."""
    spoil, status, says = FAULTS[fault]
    events = NAMES + [slice_("other", 0, 1000), kernel("gemm_kernel", 100, 150), kernel("gemm_kernel", 200, 250)]
    text = spoil(text_of_trace(events))
    (tmp_path / "traces").mkdir()
    for path in (tmp_path / "t.json", tmp_path / "traces/t.json"):
        path.write_text(text)
    with tarfile.open(tmp_path / "t.tgz", "w:gz") as tar:
        tar.add(tmp_path / "t.json", "t.json")
    (tmp_path / "s.ini").write_text(SCHEMA)
    done = run("summary.py", "--input", tmp_path / place, "--schema", tmp_path / "s.ini")
    assert done.returncode == status and json.loads(done.stdout)["matmul_time"] == 100
    assert done.stderr.count("\n") == bool(says) and says in done.stderr, done.stderr


@pytest.mark.parametrize("kind, before", [(tarfile.GNUTYPE_LONGNAME, False), (tarfile.XHDTYPE, False), (tarfile.GNUTYPE_LONGNAME, True)])
def test_a_tarball_with_a_name_of_a_gigabyte(tmp_path, kind, before):
    """tarfile would read it as a whole, out of a file of a megabyte."""
    text = text_of_trace(NAMES + [kernel("gemm_kernel", 100, 150)]).encode()
    header, member = tarfile.TarInfo("x"), tarfile.TarInfo("t.json")
    header.type, header.size, member.size = kind, 1 << 30, len(text)
    (tmp_path / "s.ini").write_text(SCHEMA)
    with gzip.open(tmp_path / "t.tgz", "wb", 1) as file:
        if before:
            file.write(member.tobuf() + text + bytes(-len(text) % 512))
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(1024):
            file.write(bytes(1 << 20))
        file.write(bytes(1024))
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))  # noqa: E731
    done = run("summary.py", "--input", tmp_path / "t.tgz", "--schema", tmp_path / "s.ini", preexec_fn=limit)
    assert done.returncode and f"{tmp_path}/t.tgz: a header of {1 << 30} bytes; what follows is left out\n" in done.stderr, done.stderr
    assert not before or json.loads(done.stdout)["matmul_time"] == 50


def test_a_member_that_is_larger_than_any_report_takes_no_room(tmp_path):
    """It is left out by its size and its beginning: nothing of it is unpacked, and what stands behind it is read."""
    text = text_of_trace(NAMES + [kernel("gemm_kernel", 100, 150)]).encode()
    large, member = tarfile.TarInfo("b.txt"), tarfile.TarInfo("t.json")
    large.size, member.size = 257 << 20, len(text)
    with gzip.open(tmp_path / "t.tgz", "wb", 1) as file:
        file.write(large.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(257):
            file.write(bytes(1 << 20))
        file.write(member.tobuf() + text + bytes(-len(text) % 512) + bytes(1024))
    (tmp_path / "s.ini").write_text(SCHEMA)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # noqa: E731
    done = run("summary.py", "--input", tmp_path / "t.tgz", "--schema", tmp_path / "s.ini", preexec_fn=limit)
    assert json.loads(done.stdout)["matmul_time"] == 50
    assert done.stderr == f"summary.py: {tmp_path}/t.tgz: b.txt: larger than any report; left out\n" and done.returncode == 0


@pytest.mark.parametrize("what", ["headers of headers", "digits"])
def test_a_tarball_whose_headers_are_odd(tmp_path, what):
    """tarfile looks for a blank again at each digit, and reads what a header leads to within it."""
    count, kind, body = {
        "headers of headers": (5000, tarfile.GNUTYPE_LONGNAME, b"a"),
        "digits": (1, tarfile.XHDTYPE, b"1" * 300000),
    }[what]
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, len(body)
    one = header.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % 512)
    member = tarfile.TarInfo("t.json")
    text = text_of_trace(NAMES + [kernel("gemm_kernel", 100, 150)]).encode()
    member.size = len(text)
    whole = member.tobuf() + text + bytes(-len(text) % 512)
    (tmp_path / "t.tar").write_bytes(whole + one * count + whole + bytes(1024))
    (tmp_path / "s.ini").write_text(SCHEMA)
    done = run("summary.py", "--input", tmp_path / "t.tar", "--schema", tmp_path / "s.ini")
    assert json.loads(done.stdout)["matmul_time"] == 50 and done.returncode
    assert re.search(r"t.tar: a header .*; what follows is left out\n$", done.stderr), done.stderr


def test_a_trace_of_which_nothing_is_summed_is_said(tmp_path):
    """A file with a trace's name among others; one of another name may be anything."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/good.json").write_text(text_of_trace(NAMES + [kernel("gemm_kernel", 100, 150)]))
    (tmp_path / "in/empty.json").write_text("")
    (tmp_path / "in/README").write_text("words")
    done = run("summary.py", "--input", tmp_path / "in")
    assert done.returncode == 1 and json.loads(done.stdout)["matmul_time"] == 50
    assert done.stderr == f"summary.py: {tmp_path}/in/empty.json: neither a report nor a trace; left out\n"


def test_which_rule_holds():
    from xstrace.categories import category_of, schema_of

    rules = [
        ("at::a", "long", "start"),
        ("at::", "short", "start"),
        ("at::a", "exact", "exact"),
        ("B", "end", "end"),
        ("x:=y", "odd", "start"),
    ]
    schema = schema_of(rules)
    wanted = {"at::a": "exact", "at::ab": None, "at::z B": "short", "at::zB": "short", "zB": "end", "a": None, "": None, "x:=yz": "odd"}
    assert {name: category_of(schema, name) for name in wanted} == {**wanted, "at::ab": "short"}


@pytest.mark.parametrize(
    "args, said",
    [
        (["--input", "none"], "none"),
        (["--input", "empty.tgz"], "no report and no trace"),
        (["--input", "reports", "--schema", "bad.ini"], "line 2"),
        (["--input", "reports", "--schema", "bad.json"], "neither INI nor"),
        (["--input", "reports", "--output", "/none/x"], "/none/x"),
    ],
)
def test_summary_refuses(reports, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    tarfile.open(tmp_path / "empty.tgz", "w:gz").close()
    (tmp_path / "bad.ini").write_text("\n[a if contains]\nx")
    (tmp_path / "bad.json").write_text('{"direct":{"length":"x"}}')
    done = run("summary.py", *args)
    assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1 and not done.stdout


def test_odd_members_are_left_out(reports, tmp_path):
    (reports / "broken.json").write_text("{")
    (reports / "binary").write_bytes(bytes(range(256)) * 50)
    done = run("summary.py", "--input", reports, "--schema", tmp_path / "s.ini")
    assert json.loads(done.stdout) == SUMS and "broken.json" in done.stderr


def test_the_same_numbers_as_unitraces_script(reports, tmp_path):
    theirs = script("summary/summary.py")
    schema = theirs.parent / "schemas/LLaMA.json"
    with tarfile.open(tmp_path / "r.tgz", "w:gz") as tar:
        tar.add(reports, "r")
    told = subprocess.run(
        [sys.executable, theirs, "--input", tmp_path / "r.tgz", "--schema", schema], capture_output=True, text=True, check=True
    )
    assert json.loads(run("summary.py", "--input", reports, "--schema", schema).stdout) == json.loads(told.stdout)


@pytest.mark.parametrize("how", ["min", "max", "mean", "median", "sum", "min+1", "max-1"])
def test_unitraces_own_samples(tmp_path, how):
    """Its schema becomes the JSON that it ships, and its sample reports the sums that its script makes of them."""
    theirs = script("summary/summary.py")
    schema = theirs.parent / "schemas/LLaMA.json"
    assert json.loads(run("categorize.py", "--ini", schema.with_suffix(".ini"), "--json", "-").stdout) == json.loads(schema.read_text())
    with tarfile.open(tmp_path / "samples.tar", "w") as tar:
        for sample in sorted((theirs.parents[1] / "roofline/example").iterdir()):
            tar.add(sample, sample.name)
    words = ["--tarfile", tmp_path / "samples.tar", "--schema", schema, "--aggregator", how]
    told = subprocess.run([sys.executable, theirs, *words, "--json", tmp_path / "told.json"], capture_output=True, check=True)
    assert told.returncode == 0 and json.loads(run("summary.py", *words).stdout) == json.loads((tmp_path / "told.json").read_text())

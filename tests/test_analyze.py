"""scripts/analyzeperfmetrics.py: lists, charts, the report of stalls, the view in a browser."""

import http.client
import http.server
import os
import re
import shutil
import signal
import ssl
import subprocess
import zlib

import pytest
from conftest import ROOT

COMMAND = ROOT / "scripts/analyzeperfmetrics.py"
GEMM = "gemm<float>(float*, int)[SIMD32 {8; 1; 1} {128; 1; 1}]"
SAMPLES = f"""
=== Device #0 Metrics ===

Kernel, GlobalInstanceId, GpuTime[ns], L3_BYTE_READ[bytes], XVE_STALL[%], QueryBeginTime[ns]
"{GEMM}", 1, 1000, 64000, 12.5, 100
"{GEMM}", 1, 1000, 32000, 25, 200

"{GEMM}", 3, 500, 16000, 50, 300

"NoKernel(Before axpy)", 900, 500, 0, 0, 330

"axpy", 4, 500, 100, 1, 350

=== Device #1 Metrics ===

Kernel, GlobalInstanceId, GpuTime[ns], XVE_ACTIVE[%]
"axpy", 2, 500, 100
"""
STALLS = """
=== Device #0 Metrics ===

          Kernel, IP[Address], Active[Events], ControlStall[Events], SendStall[Events], SbidStall[Events], OtherStall[Events]
"scale(float*)",           0,              9,                    0,                 0,                 0,                  0
"scale(float*)",          38,              4,                    7,                 0,                 3,                  0
"scale(float*)",          40,              0,                    0,                 5,                99,                  0
"scale(float*)",         f00,              0,                    0,                 1,                 0,                  0
        "idle()",          0,              9,                    0,                 0,                 0,                  0
"""
# instructions at 0x00, 0x10, 0x20, 0x28, 0x38, 0x40
ASSEMBLY = """//.kernel _Z5scalePf
//.platform XE2
// B001: Preds:{},  Succs:{B002, B003}
// File: /src/scale.cpp
// Line 11:  float value = in[i];
         load.ugm.d32.a64 (32|M0)  r18:2  [r14:4]  {I@1,$5} // ex_desc:0x0; desc:0x8200580 // $2
         mov (1|M0)  r2.0<1>:d  r1.0<0;1,0>:d  // $3
// B002: Preds:{B001},  Succs:{B003}
         add (1|M0)  r3.0<1>:d  r2.0<0;1,0>:d  1:w  {Compacted} // $4
// Line 12:  value = 1 / value;
         math.inv (16|M0)  r20.0<1>:f  r18.0<1;1,0>:f  {@1,$7} // $5
// B003: Preds:{B001, B002},  Succs:{}
// Line 13:  out[i] = value;
         sync.nop  null  {Compacted,$5.dst} // $6
         store.ugm.d32.a64 (32|M0)  [r4:4]  r20:2  {$7.dst,$6} // $7
"""


def analyze(*args, status=0):
    run = subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert run.returncode == status, run
    return run


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "perf.metrics.7.csv"
    path.write_text(SAMPLES)
    return path


@pytest.fixture
def stalls(tmp_path):
    path = tmp_path / "stalls.metrics.7.csv"
    path.write_text(STALLS)
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump/OCL_asm1_simd32.asm").write_text("//.kernel _Z5scalePf\n wrong // older\n")
    (tmp_path / "dump/OCL_asm1_simd32_0001.asm").write_text(ASSEMBLY)
    return path


def streams_of(pdf):
    """The drawing commands of the pages of a PDF, as text."""
    data = pdf.read_bytes()
    assert data.startswith(b"%PDF") and data.rstrip().endswith(b"%%EOF")
    found = []
    for match in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL):
        try:
            found.append(zlib.decompress(match[1]).decode("latin-1"))
        except zlib.error:
            continue
    return found


def pages_of(pdf):
    return len(re.findall(rb"/Type /Page\b", pdf.read_bytes()))


def charts_in(text):
    """Of an HTML file: the series of each chart, by name."""
    found = []
    for one in text.split("Plotly.newPlot(")[1:]:
        found.append({name: values for values, name in zip(re.findall(r'"y":\[([^\]]*)\]', one), re.findall(r'"name":"([^"]*)"', one))})
    return found


# ---- lists ----


def test_list(samples):
    assert analyze("-l", samples).stdout.splitlines() == [
        "Device 0", "    Metric", "        GpuTime[ns]", "        L3_BYTE_READ[bytes]", "        XVE_STALL[%]", "        QueryBeginTime[ns]",
        "    Kernel, Number of Instances", f'        "{GEMM}", 2', '        "NoKernel(Before axpy)", 1', '        "axpy", 1',
        "Device 1", "    Metric", "        GpuTime[ns]", "        XVE_ACTIVE[%]", "    Kernel, Number of Instances", '        "axpy", 1',
    ]  # fmt: skip


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_cannot_be_written_is_not_the_inputs_fault(samples, monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, "-l", samples], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "No space left" in done.stderr and samples.name not in done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([COMMAND, "-l", samples], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


def test_there_are_not_more_charts_than_anybody_looks_at(samples, tmp_path, monkeypatch, capsys):
    pytest.importorskip("plotly")
    from xstrace import analyze as command

    monkeypatch.setattr(command, "MOST_DRAWN", 2)
    for instance, drawn in (("0", 2), ("1", 2)):
        assert command.main(["-m", "XVE_STALL[%]", "-y", "%", "-i", instance, "-o", str(tmp_path / "out.html"), str(samples)]) == 0
        assert len(charts_in((tmp_path / "out.html").read_text())) == drawn
        told = "the first 2 of 3 executions are drawn; -k and -i say which"
        assert (told in capsys.readouterr().err) == (instance == "0")


def test_sections_of_several_groups(tmp_path):
    """Of a device's sections that one is charted which has the metrics."""
    path = tmp_path / "two.csv"
    path.write_text(SAMPLES + f'\n=== Device #0 Metrics ===\n\nKernel,GlobalInstanceId,GpuTime[ns],L3_BUSY[%]\n"{GEMM}",1,500,75\n"{GEMM}",1,500,25\n\n')
    for metrics, charted in (("L3_BUSY[%], GpuTime[ns]", {"L3_BUSY[%]": "75.0,25.0", "GpuTime[ns]": "500.0,500.0"}), ("XVE_STALL[%]", {"XVE_STALL[%]": "12.5,25.0"})):
        analyze("-m", metrics, "-y", "%", "-k", GEMM, "-o", tmp_path / "out.html", path)
        assert charts_in((tmp_path / "out.html").read_text()) == [charted]


def test_list_of_stalls_in_a_file(stalls, tmp_path):
    assert not analyze("-l", "-o", tmp_path / "list.txt", stalls).stdout
    lines = (tmp_path / "list.txt").read_text().splitlines()
    assert lines[2:4] == ["        Active[Events]", "        ControlStall[Events]"]
    assert lines[-3:] == ["    Kernel", '        "scale(float*)"', '        "idle()"']


def test_semicolons_and_decimal_commas(tmp_path):
    path = tmp_path / "saved.csv"
    path.write_text("Kernel;GlobalInstanceId;XVE_STALL[%]\naxpy;1;12,5\n")
    analyze("-m", "XVE_STALL[%]", "-y", "%", "-o", tmp_path / "out.html", path)
    assert charts_in((tmp_path / "out.html").read_text()) == [{"XVE_STALL[%]": "12.5"}]


def test_older_files(tmp_path):
    """As unitrace wrote them once: reports before, the device in a column, names again and again, commas at the ends."""
    head = "Kernel,Device,SubDeviceId,GpuTime[ns],XVE_STALL[%],"
    path = tmp_path / "old.csv"
    table = "=== Device Timing Summary ===\n\n  Kernel,  Calls\n  axpy,  2\n\n== Kernel Metrics ==\n\n"
    path.write_text(f"{table}{head}\naxpy[SIMD8],0,0,10,12.5,\naxpy[SIMD8],0,1,10,25,\n\n{head}\naxpy[SIMD8],0,0,20,50,\n\n{head}\ngemm,1,0,5,1,\n")
    listed = analyze("-l", path).stdout.splitlines()
    assert '        "axpy[SIMD8]", 2' in listed and "Device 1" in listed and listed[-1] == '        "gemm", 1'
    analyze("-i", 0, "-m", "XVE_STALL[%]", "-y", "%", "-o", tmp_path / "out.html", path)
    assert charts_in((tmp_path / "out.html").read_text()) == [{"XVE_STALL[%]": "12.5,25.0"}, {"XVE_STALL[%]": "50.0"}]


# ---- charts ----


def test_values_of_charts(samples, tmp_path):
    out = tmp_path / "out.html"
    run = analyze("-k", GEMM, "-i", 0, "-m", "XVE_STALL[%], GpuTime[ns]", "-y", "Y", "-b", "L3_BYTE_READ[bytes]", "-t", "T <b>", "-o", out, samples)
    assert run.stdout.splitlines() == [f"Analyzed kernel {GEMM}"] * 2 + [f"Charts are stored in {out}"]
    assert charts_in(out.read_text()) == [
        {"XVE_STALL[%]": "12.5,25.0", "GpuTime[ns]": "1000.0,1000.0"},
        {"L3_BYTE_READ[bytes]": "64.0,32.0"},  # bytes per ns
        {"XVE_STALL[%]": "50.0", "GpuTime[ns]": "500.0"},
        {"L3_BYTE_READ[bytes]": "32.0"},
    ]
    text = out.read_text()
    assert "<b>" not in text.split("Plotly.newPlot(")[1].split("</script>")[0]
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="', text)  # nothing from elsewhere


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("which,pages", [(["-k", GEMM], 1), (["-k", GEMM, "-i", 2], 1), (["-i", 0], 3), ([], 2), (["-d", 0, "-i", 2], 1)])
def test_pages(samples, tmp_path, which, pages):
    analyze(*which, "-m", "XVE_STALL[%]", "-y", "Y", "-o", tmp_path / "out.pdf", samples)
    assert pages_of(tmp_path / "out.pdf") == pages
    assert sum(" l\n" in text or " re\n" in text for text in streams_of(tmp_path / "out.pdf")) >= pages


def test_options_of_a_file(samples, tmp_path):
    (tmp_path / "config.txt").write_text('-d 1 -m "XVE_ACTIVE[%]"\n-y "Active (%)"')
    analyze("-f", tmp_path / "config.txt", "-o", tmp_path / "out.html", samples)
    assert charts_in((tmp_path / "out.html").read_text()) == [{"XVE_ACTIVE[%]": "100.0"}]


# ---- stalls ----


@pytest.mark.skipif(not shutil.which("c++filt"), reason="no c++filt")
def test_report_of_stalls(stalls, tmp_path):
    report = tmp_path / "report.txt"
    run = analyze("-s", tmp_path / "dump", "-o", tmp_path / "out.pdf", "-r", report, stalls)
    assert "Analyzed kernel scale(float*)" in run.stdout and "No stall events for kernel idle()" in run.stdout
    text = report.read_text()
    sbid, control, send = text.split("*" * 95)[1:]
    assert [part.split(" Stalls")[0].strip() for part in (sbid, control, send)] == ["Sbid", "Control", "Send"]
    first, second = sbid.split("\nInstruction, ")[1:]
    # the store waits for the inverse, which is in one of the blocks before
    lines = [line.strip() for line in first.splitlines()]
    assert lines[0] == "99 events" and lines[1].startswith("/* [00000040] */") and "store.ugm" in lines[1]
    assert lines[2:6] == ["Line 13:  out[i] = value;", "File: /src/scale.cpp", "is stalled potentially by", "instruction"]
    assert lines[6].startswith("/* [00000028] */") and lines[7] == "Line 12:  value = 1 / value;"
    lines = [line.strip() for line in second.splitlines()]
    assert lines[0] == "3 events" and lines[1].startswith("/* [00000038] */") and lines[6].startswith("/* [00000000] */")
    assert lines[7] == "Line 11:  float value = in[i];"
    assert "[00000F00]\nis not in the assembly" in send
    assert pages_of(tmp_path / "out.pdf") == 2


def test_chart_of_stalls(stalls, tmp_path):
    analyze("-k", "scale(float*)[SIMD32 {1; 1; 1} {1; 1; 1}]", "-o", tmp_path / "out.html", stalls)
    assert charts_in((tmp_path / "out.html").read_text()) == [
        {"ControlStall[Events]": "7.0,0.0,0.0", "SendStall[Events]": "0.0,5.0,1.0", "SbidStall[Events]": "3.0,99.0,0.0"}
    ]


# as nvdisasm prints it: a loop that loads, and a kernel without source
SASS = """
//--------------------- .text._Z3sumPfS_i --------------------------
	.section	.text._Z3sumPfS_i,"ax",@progbits
_Z3sumPfS_i:
.text._Z3sumPfS_i:
	//## File "/src/sum.cu", line 3
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   ISETP.GE.AND P0, PT, R0, UR4, PT ;
        /*0020*/               @P0 BRA `(.L_x_1) ;
	//## File "/src/sum.cu", line 4
.L_x_0:
        /*0030*/                   LDG.E.64 R2, desc[UR4][R8.64] ;
        /*0040*/                   IADD3 R8, R8, 0x8, RZ ;
        /*0050*/                   FFMA R6, R3.reuse, R3, R6 ;
        /*0060*/               @P1 BRA `(.L_x_0) ;
.L_x_1:
	//## File "/src/sum.cu", line 5
        /*0070*/                   STG.E desc[UR4][R10.64], R6 ;
        /*0080*/                   MOV R2, R0 ;
        /*0090*/                   FADD R4, R2, R6 ;
        /*00a0*/                   EXIT ;
//--------------------- .text.other --------------------------
.text.other:
        /*0000*/                   EXIT ;
"""
SASS_STALLS = """
=== Device #0 Metrics ===

Kernel,IP[Address],Active[Events],LongScoreboardStall[Events],ShortScoreboardStall[Events],WaitStall[Events]
"sum(float*, float*, int)",10,1,0,5,2
"sum(float*, float*, int)",50,1,80,0,0
"sum(float*, float*, int)",90,1,7,0,0
"""


def sass_report(tmp_path, tool, reason):
    """The parts of the report that are of that reason, by instruction."""
    (tmp_path / "stalls.csv").write_text(SASS_STALLS)
    (tmp_path / "dump").mkdir(exist_ok=True)
    (tmp_path / "dump/k.cubin").write_text("not looked at")
    (tmp_path / "bin").mkdir(exist_ok=True)
    (tmp_path / "bin/nvdisasm").write_text(tool)
    (tmp_path / "bin/nvdisasm").chmod(0o755)
    (tmp_path / "nvdisasm.txt").write_text(SASS)
    command = [COMMAND, "-s", tmp_path / "dump", "-o", tmp_path / "out.html", "-r", tmp_path / "report.txt", tmp_path / "stalls.csv"]
    env = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    assert run.returncode == 0, run
    text = (tmp_path / "report.txt").read_text()
    part = next((part for part in text.split("*" * 95) if part.strip().startswith(f"{reason} Stalls")), "")
    return run, [[line.strip() for line in one.splitlines() if line.strip()] for one in part.split("\nInstruction, ")[1:]]


def test_report_of_sass(tmp_path):
    tool = f"#!/bin/sh\ncat {tmp_path}/nvdisasm.txt\n"
    run, (first, second) = sass_report(tmp_path, tool, "LongScoreboard")
    assert not run.stderr
    # the pair of registers that the loop has loaded; the source of both
    assert first[:4] == ["80 events", "/*0050*/ FFMA R6, R3.reuse, R3, R6", "Line 4", "File: /src/sum.cu"]
    assert first[4:] == [
        "is stalled potentially by",
        "instruction",
        "/*0030*/ LDG.E.64 R2, desc[UR4][R8.64]",
        "Line 4",
        "File: /src/sum.cu",
    ]
    # R2 was written again, R6 never loaded: no cause is made up
    assert second[0] == "7 events" and second[-1] == "is stalled"
    _, (only,) = sass_report(tmp_path, tool, "ShortScoreboard")
    assert only[-3:] == ["/*0000*/ S2R R0, SR_TID.X", "Line 3", "File: /src/sum.cu"]
    _, (only,) = sass_report(tmp_path, tool, "Wait")
    assert only[-2] == "is stalled"


def test_sass_without_or_with_a_broken_nvdisasm(tmp_path):
    run, _ = sass_report(tmp_path, "#!/bin/sh\necho 'nvdisasm fatal: not an ELF file' >&2\nexit 1\n", "Wait")
    assert f"nvdisasm cannot read {tmp_path}/dump/k.cubin: nvdisasm fatal: not an ELF file" in run.stderr
    assert "No .asm or .cubin file" in (tmp_path / "report.txt").read_text()


NVCC = next((path for path in ROOT.glob(".venv/lib/python3*/site-packages/nvidia/cu*") if (path / "bin/nvcc").exists()), None)


@pytest.mark.skipif(not NVCC, reason="no nvcc and nvdisasm of PyPI's: scripts/setup --clients")
def test_sass_of_nvcc(tmp_path):
    """What NVIDIA's own compiler and disassembler of today make."""
    (tmp_path / "k.cu").write_text(
        'extern "C" __global__ void kernel(float *a, const float *b)\n{\n\tint i = threadIdx.x;\n\ta[i] = rsqrtf(b[i]) * 3;\n}\n'
    )
    path = f"{NVCC}/bin:{NVCC}/nvvm/bin:{os.environ['PATH']}"
    command = ["nvcc", "-cubin", "-arch=sm_90", "-lineinfo", "-o", tmp_path / "dump/k.cubin", tmp_path / "k.cu"]
    (tmp_path / "dump").mkdir()
    subprocess.run(command, env=os.environ | {"PATH": path}, check=True)
    program = f"""
from xstrace.stalls import Dump
listing = Dump({str(tmp_path / "dump")!r}).listing("kernel")
rsqrt = next(one for one in listing.instructions if "MUFU.RSQ" in one.text)
uses = next(one for one in listing.instructions if one.waits & rsqrt.defines and one.address > rsqrt.address)
print([one.text for one in listing.causes(listing.places[uses.address], "Short")], uses.line, uses.file)
"""
    run = subprocess.run(
        ["python3", "-c", program], env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True
    )
    assert "MUFU.RSQ" in run.stdout and f"Line 4 File: {tmp_path}/k.cu" in run.stdout, run


# ---- the view ----


@pytest.fixture
def view(samples):
    started = []

    def start(*args):
        command = [COMMAND, "--port", "0", "-m", "XVE_STALL[%]", "-y", "Y", *args, samples]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return re.fullmatch(r"Open (https?)://localhost:(\d+)/\?token=(\S+)\n", process.stdout.readline()).groups()

    yield start
    for process in started:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == -signal.SIGINT
        process.stdout.close()


def get(port, path, secure=False, **headers):
    context = ssl._create_unverified_context() if secure else None
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context) if secure else http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path, headers={"Host": f"localhost:{port}", **headers})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer.headers


def test_view(view):
    scheme, port, token = view("-q")
    port = int(port)
    assert scheme == "http"
    assert get(port, "/gemm/1")[0] == 403
    assert get(port, "/?token=wrong")[0] == 403
    status, _, headers = get(port, f"/?token={token}")
    assert status == 303 and headers["Location"] == "/" and "SameSite=Lax" in headers["Set-Cookie"]
    cookie = headers["Set-Cookie"].split(";")[0]
    status, text, _ = get(port, "/", Cookie=cookie)
    links = re.findall(r'href="([^"]*)"', text)
    assert status == 200 and len(links) == 5
    status, text, _ = get(port, links[0], Cookie=cookie)
    assert status == 200 and charts_in(text) == [{"XVE_STALL[%]": "12.5,25.0"}]
    assert get(port, "/axpy/77", Cookie=cookie)[:2] == (404, "The file has no metrics of this instance")
    assert get(port, "/axpy/one", Cookie=cookie)[0] == 404
    assert get(port, "/", Cookie=cookie, Host="evil.example")[0] == 421


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl")
def test_view_by_https(view):
    scheme, port, token = view("-p")
    assert scheme == "https"
    assert get(int(port), f"/?token={token}", secure=True)[0] == 303


def test_only_this_machine(view):
    _, port, _ = view("-q")
    rows = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
    assert [row[1].split(":")[0] for row in rows if int(row[1].split(":")[1], 16) == int(port) and row[3] == "0A"] == ["0100007F"]
    with open("/proc/net/tcp6") as file:
        assert not any(int(line.split()[1].split(":")[1], 16) == int(port) for line in file.readlines()[1:])


# ---- bad input ----

DRAW = ["-m", "XVE_STALL[%]", "-y", "Y", "-o", "out.pdf"]
HEAD = "Kernel, GlobalInstanceId, XVE_STALL[%]\n"


@pytest.mark.parametrize(
    "text,said",
    [
        ("", "the file is empty"),
        ("hello\n", 'no metrics: there is no line that begins with "Kernel"'),
        ("Kernel, GlobalInstanceId\n", "line 1: there are no metrics: the group is empty"),
        ("Kernel, A, B\n", 'no metrics: the column behind "Kernel" is neither GlobalInstanceId nor IP[Address], but "A"'),
        ("Kernel, GlobalInstanceId, A, A\n", 'line 1: two columns are named "A"'),
        (HEAD + "a, 1, 2\na, 1, 3", "line 3: it has no end: the file was cut"),
        (HEAD + "a, 1\n", "line 2: 2 values for 3 columns"),
        (HEAD + "a, 1, 2,5\n", "line 2: 4 values for 3 columns (decimal commas? save it with semicolons, or with decimal points)"),
        (HEAD + "a, 1, many\n", 'line 2: "many" is no number (XVE_STALL[%])'),
        (HEAD + "a, x, 1\n", 'line 2: "x" is no number (GlobalInstanceId)'),
        ("Kernel, IP[Address], SbidStall[Events]\na, zz, 1\n", 'line 2: "zz" is no address'),
        *(
            (f"Kernel, Device, XVE_STALL[%]\na, {device}, 1\n", f'line 2: "{device}" is no number of a device')
            for device in ("inf", "nan", "-1", "0.5", "1e300")
        ),
        (HEAD, "there is nothing to draw"),
        ("x" * (1 << 21), "line 1: longer than 1048576 characters: no file of metrics"),
    ],
    ids=range(18),
)
def test_damaged_files(tmp_path, text, said):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    run = analyze(*DRAW, path, status=1)
    assert run.stderr == f"analyzeperfmetrics.py: {path}: {said}\n"


@pytest.mark.parametrize(
    "text",
    [
        "Kernel, GlobalInstanceId, " + ", ".join(f"m{i}" for i in range(100000)) + "\n",
        "".join(f"=== Device #{i} Metrics ===\n\n{HEAD}a, 1, 2\n\n" for i in range(40000)),
    ],
    ids=["columns", "devices"],
)
def test_large_files_take_a_time_like_their_size(tmp_path, text):
    path = tmp_path / "large.csv"
    path.write_text(text)
    run = subprocess.run([COMMAND, "-l", path], capture_output=True, text=True, timeout=20, check=True)
    assert run.stdout.count("Device ") == max(text.count("=== Device "), 1)


@pytest.mark.parametrize(
    "args,said",
    [
        (["-m", "XVE_STAL[%]", "-y", "Y"], 'no metric is named "XVE_STAL[%]" (did you mean "XVE_STALL[%]"?); -l lists them'),
        (["-m", "XVE_STALL", "-y", "Y"], 'no metric is named "XVE_STALL" (did you mean "XVE_STALL[%]"?); -l lists them'),
        (["-m", " ", "-y", "Y"], "a list of metrics is empty"),
        (["-k", "axpi", "-m", "XVE_STALL[%]", "-y", "Y"], 'no metrics of kernel "axpi" (did you mean "axpy"?); -l lists them'),
        (["-k", "axpy", "-i", 2, "-m", "XVE_STALL[%]", "-y", "Y"], 'kernel "axpy" has 1 instances, not 2'),
        (["-d", 3], "the file has no device 3, only 0, 1"),
        ([], "-m and -y are missing: which metrics to draw; -l lists them"),
    ],
    ids=range(7),
)
def test_what_the_file_does_not_have(samples, args, said):
    run = analyze(*args, "-o", "out.pdf", samples, status=1)
    assert run.stderr == f"analyzeperfmetrics.py: {samples}: {said}\n"
    assert not os.path.exists("out.pdf")


@pytest.mark.parametrize(
    "args,said",
    [
        (["-m", "A", "-o", "o.pdf", "x.csv"], "each -m needs its -y: there are 1 and 0"),
        (["-q", "-p", "x.csv"], "-p and -q exclude each other"),
        (["-p", "-c", "c", "x.csv"], "-c and -e need each other"),
        (["x.csv"], "-o FILE is missing: where to put the charts"),
        (["-l", "/nowhere.csv"], "/nowhere.csv: No such file or directory"),
        (["-l", "/"], "/: Is a directory"),
        (["-f", "/nowhere.txt", "x.csv"], "/nowhere.txt: No such file or directory"),
        (["--wrong", "x.csv"], "unknown option --wrong; see analyzeperfmetrics.py --help"),
    ],
    ids=range(8),
)
def test_misuse(args, said):
    assert analyze(*args, status=1).stderr == f"analyzeperfmetrics.py: {said}\n"

"""The report as one HTML page that needs nothing else: no network, no script for its text.

All that comes from a trace passes text() or name(). The page's own policy lets no script run and nothing load but what style.py holds.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
import urllib.parse
from html import escape

from . import drawing, words
from .prelude import with_tables
from .style import CSS, JS

ROWS_MAX = 100  # of a table; --json has all
SERVED = "http://127.0.0.1:9001/"  # what Perfetto's UI may fetch from this machine
KIND_TEXTS = {
    "own": "the program's own code (in no call and no task)",
    "task": "the program's own tasks",
    "wait": "waiting for a device",
    "poll": "asking whether something is ready",
    "mpi": "in MPI",
    "launch": "launching kernels",
    "copy": "enqueuing copies",
    "build": "building and loading device code",
    "alloc": "allocating memory",
    "call": "other API calls",
    "tracing": "what tracing cost",
    "other": "others",
}
DEVICE_TEXTS = {
    "kernel": "kernels",
    "both": "kernels and copies at once",
    "copy": "copies and other work alone",
    "between": "idle between its work",
    "before": "idle before its first work",
    "after": "idle after its last work",
}


def render(data):
    """The page (a str) of a report (reduce.py)."""
    sections = [(id, title, draw(data)) for id, title, draw in SECTIONS]
    sections = [section for section in sections if section[2]]
    links = " ".join(f'<a href="#{id}">{title}</a>' for id, title, _ in sections)
    body = "".join(f'<section><h2 id="{id}">{title}</h2>{html}</section>\n' for id, title, html in sections)
    policy = (
        f"default-src 'none'; style-src 'sha256-{_digest(CSS)}'; script-src 'sha256-{_digest(JS)}'; base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>xstrace report: {name(_title(data))}</title>
<style>{CSS}</style>
</head>
<body>
<header><h1>Why is it slow? {name(_title(data))}</h1>{_summary(data)}</header>
<nav>{links}</nav>
<main>
{body}</main>
<footer class="dim"><p>xstrace-report {escape(data["version"])}. Times of a name include what it calls, unless a column says otherwise.</p></footer>
<script>{JS}</script>
</body>
</html>
"""


def _digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def text(value):
    """A value of a trace, safe in HTML."""
    return escape(words.name(value))


name = text


def _table(columns, rows, sortable=True):
    """columns: (title, is a number); rows: lists of cells, each HTML or (HTML, value to sort by)."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col"{" class=n" if numeric else ""}>{title}</th>' for title, numeric in columns)
    out = []
    for row in rows:
        cells = []
        for (_, numeric), cell in zip(columns, row, strict=True):
            html, value = cell if isinstance(cell, tuple) else (cell, None)
            sort = "" if value is None else f' data-v="{value}"'
            cells.append(f"<td{' class=n' if numeric else ''}{sort}>{html}</td>")
        out.append("<tr>" + "".join(cells) + "</tr>")
    kind = ' class="sort"' if sortable and len(rows) > 1 else ""
    return f'<div class="wide"><table{kind}><thead><tr>{head}</tr></thead><tbody>{"".join(out)}</tbody></table></div>'


def _ns(ns):
    return (words.time(ns), ns)


def _count(number):
    return (words.number(number), number)


def _percent(part, whole):
    return (words.share(part / whole), f"{part / whole:.6f}") if whole else ("–", 0)


def _more(count, shown=ROWS_MAX):
    return f'<p class="dim">{words.number(count - shown)} more; <code>--json</code> has them.</p>' if count > shown else ""


# ---- what stands above ----


def _title(data):
    labels = {row["label"].split("/")[-1] for row in data["processes"]}
    return labels.pop() if len(labels) == 1 else f"{len(data['processes'])} processes"


def _summary(data):
    processes, traces = data["processes"], data["traces"]
    hosts = {row["host"] for row in processes if row["host"]}
    parts = [
        f"{words.time(data['span'])} in all",
        f"{len(traces)} trace{'s' * (len(traces) > 1)}",
        f"{len(processes)} process{'es' * (len(processes) > 1)}",
    ]
    if hosts:
        parts.append(f"{len(hosts)} host{'s' * (len(hosts) > 1)}")
    tools = sorted({f"{trace['tool'] or 'unknown tool'} {trace['version'] or ''}".strip() for trace in traces})
    parts.append("by " + ", ".join(map(text, tools)))
    lines = [f'<p class="dim">{", ".join(parts)}</p>', f'<p class="lead">{_answer(data)}</p>']
    if data["unusable"]:
        lines.append(f"<p>{len(data['unusable'])} trace(s) could not be used: they are named below.</p>")
    return "".join(lines)


def _answer(data):
    """The run in two sentences."""
    whole = sum(data["where"].values())
    parts = sorted(data["where"].items(), key=lambda item: -item[1])
    said = [f"{words.share(ns / whole)} {KIND_TEXTS[kind]}" for kind, ns in parts if whole and ns >= 0.05 * whole][:3]
    answer = f"The thread that drives the work spent its time so: {', '.join(said)}." if said else ""
    devices = data["devices"]
    if devices:
        span = sum(device["span"] for device in devices)
        busy = sum(device["busy"] for device in devices)
        what = "The device was" if len(devices) == 1 else f"{len(devices)} devices were"
        answer += f" {what} busy for {words.share(busy / span if span else 0)} of the time."
    else:
        answer += " The traces hold no device work."
    first = next((finding for finding in data["findings"] if finding["cost"]), None)
    if first:
        answer += (
            f' First to look at: <a href="#{first["id"]}">{first["title"].lower()}</a> ({words.share(first["share"])} {first["share_of"]}).'
        )
    return answer


# ---- sections ----


def _where(data):
    whole = sum(data["where"].values())
    parts = [(kind, data["where"].get(kind, 0), KIND_TEXTS[kind]) for kind in KIND_TEXTS if data["where"].get(kind)]
    out = ["<h3>Host: the thread of each process that feeds its devices (without devices: the busiest)</h3>"]
    out.append(drawing.bar([(kind, ns, f"{what}: {words.time(ns)}, {words.share(ns / whole)}") for kind, ns, what in parts], whole))
    out.append(_key_table(sorted(parts, key=lambda part: -part[1]), whole))
    waits = [row for row in data["lead_calls"] if row["class"] in ("wait", "mpi", "poll")][:10]
    if waits:
        rows = [[_named(row["name"]), _count(row["count"]), _ns(row["ns"]), _percent(row["ns"], whole)] for row in waits]
        out.append("<h3>It waited in</h3>" + _table([("call", False), ("calls", True), ("time", True), ("of its time", True)], rows))
    devices = data["devices"]
    if devices:
        span = sum(device["span"] for device in devices)
        parts = [(kind, sum(device[kind] for device in devices), what) for kind, what in DEVICE_TEXTS.items()]
        out.append(f"<h3>Device{'s, all together' if len(devices) > 1 else ''}</h3>")
        out.append(drawing.bar([(kind, ns, f"{what}: {words.time(ns)}") for kind, ns, what in parts], span))
        out.append(_key_table([part for part in parts if part[1]], span))
    return "".join(out)


def _named(value):
    return f'<span class="name">{name(value)}</span>'


def _key_table(parts, whole):
    rows = [[f'<i class="key s-{kind}"></i>{what}', _ns(ns), _percent(ns, whole)] for kind, ns, what in parts]
    return _table([("what", False), ("time", True), ("share", True)], rows, sortable=False)


def _findings(data):
    if not data["findings"]:
        return "<p>None of the known patterns costs enough to be named. The tables below show where the time went.</p>"
    bases = {trace["path"]: trace for trace in data["traces"]}
    note = '<p class="dim">Costs of different findings may be the same time: they do not add up. '
    note += "Links lead into Perfetto while <code>xstrace-open --keep --no-browser TRACE</code> runs.</p>"
    return note + "".join(_finding(finding, data, bases) for finding in data["findings"])


def _finding(finding, data, traces):
    cost = (
        f"{words.share(finding['share'])} {finding['share_of']} ({words.time(finding['cost'])})"
        if finding["cost"]
        else "no time of its own"
    )
    many = len(data["processes"]) > 1
    where = (
        f'<p class="dim">In {finding["processes"]} of {len(data["processes"])} processes; worst in {_named(finding["process"])}.</p>'
        if many
        else ""
    )
    return (
        f'<article class="finding{"" if finding["cost"] else " note"}" id="{finding["id"]}">'
        f'<div class="head"><span class="cost">{cost}</span><h3>{escape(finding["title"])}</h3></div>'
        f"<p>{escape(finding['text'])}</p><p><b>What to do:</b> {escape(finding['do'])}</p>{where}{_place(finding['place'], traces)}{_sql(finding)}</article>"
    )


def _sql(finding):
    path = finding["place"]["trace"]
    if finding["id"] in ("imbalance", "communication"):
        path = os.path.dirname(path) or "."
    return (
        f"<details><summary>The SQL that found it</summary><p><code>xstrace-query {text(shlex.quote(path))}</code>, with this as its standard input:</p>"
        f"<pre>{escape(with_tables(finding['sql']))}</pre></details>"
    )


def _place(place, traces):
    """Where to look: time and track to type, and a link for Perfetto's UI when the trace is served."""
    trace = traces.get(place["trace"])
    if place["ts"] is None or trace is None:
        return f"<p>Trace: <code>{text(place['trace'])}</code></p>"
    track = f", thread {text(place['thread'] or place['tid'])} (tid {place['tid']})" if place["tid"] is not None else ""
    begins = trace["begins"] if trace["begins"] is not None else place["ts"]
    at = f"{(place['ts'] - begins) / 1e9:.6f} s after the trace's begin, for {words.time(place['dur'])}"
    return f'<p>See <code>{text(place["trace"])}</code>, {at}{track}. <a class="screen" rel="noreferrer" href="{escape(_link(place, trace))}">In Perfetto</a></p>'


def _link(place, trace):
    """Perfetto's UI with the place in view, while xstrace-open --keep serves the trace."""
    start = place["ts"] - (trace["base"] or 0)
    margin = max(place["dur"] // 4, 1000)
    url = SERVED + urllib.parse.quote(os.path.basename(place["trace"]), errors="replace")
    query = {
        "url": url,
        "visStart": max(start - margin, (trace["begins"] or place["ts"]) - (trace["base"] or 0)),
        "visEnd": start + place["dur"] + margin,
    }
    return "https://ui.perfetto.dev/#!/?" + urllib.parse.urlencode(query)


def _timeline(data):
    picture = drawing.timeline(data["drawn"], data["processes"], data["begins"], data["ends"])
    more = len(data["processes"]) - len(data["drawn"])
    return picture and picture + (f'<p class="dim">{more} more processes are not drawn.</p>' if more > 0 else "")


def _idle(data):
    between = sum(device["between"] for device in data["devices"])
    if not between:
        return ""
    rows = [
        [
            _named(row["name"]) if row["name"] else "in no slice: the program's own code",
            KIND_TEXTS[row["class"]],
            _ns(row["ns"]),
            _percent(row["ns"], between),
        ]
        for row in data["idle"][:ROWS_MAX]
    ]
    intro = "<p>While a device had nothing to do between two pieces of work, the thread that feeds it was in (innermost):</p>"
    return (
        intro + _table([("call or task", False), ("doing", False), ("idle time", True), ("of it", True)], rows) + _more(len(data["idle"]))
    )


def _kernels(data):
    whole = sum(row["ns"] for row in data["kernels"])
    rows = [
        [_named(row["name"]), _count(row["count"]), _ns(row["ns"]), _percent(row["ns"], whole), *_spread(row)]
        for row in data["kernels"][:ROWS_MAX]
    ]
    columns = [
        ("kernel", False),
        ("count", True),
        ("time", True),
        ("of all kernels", True),
        ("mean", True),
        ("least", True),
        ("most", True),
    ]
    return _table(columns, rows) + _more(len(data["kernels"]))


def _spread(row):
    return _ns(row["ns"] // max(row["count"], 1)), _ns(row["min"]), _ns(row["max"])


def _copies(data):
    rows = []
    for row in data["copies"][:ROWS_MAX]:
        rate = row["bytes"] / row["ns"] if row["ns"] else 0
        size = (words.size(row["bytes"]), row["bytes"])
        rows.append([_named(row["name"]), _count(row["count"]), _ns(row["ns"]), size, (f"{rate:.3g} GB/s", f"{rate:.6g}"), *_spread(row)])
    columns = [
        ("copy", False),
        ("count", True),
        ("time", True),
        ("bytes", True),
        ("rate", True),
        ("mean", True),
        ("least", True),
        ("most", True),
    ]
    return _table(columns, rows) + _more(len(data["copies"]))


def _calls(data):
    rows = [
        [_named(row["name"]), KIND_TEXTS[row["class"]], _count(row["count"]), _ns(row["ns"]), *_spread(row)]
        for row in data["calls"][:ROWS_MAX]
    ]
    columns = [("call", False), ("what it is for", False), ("count", True), ("time", True), ("mean", True), ("least", True), ("most", True)]
    return _table(columns, rows) + _more(len(data["calls"]))


def _tasks(data):
    rows = [
        [_named(row["name"]), _count(row["count"]), _ns(row["self"]), _ns(row["ns"]), *_spread(row)] for row in data["tasks"][:ROWS_MAX]
    ]
    columns = [
        ("task", False),
        ("count", True),
        ("own time", True),
        ("with all in it", True),
        ("mean", True),
        ("least", True),
        ("most", True),
    ]
    return _table(columns, rows) + _more(len(data["tasks"]))


def _gaps(data):
    if not data["gaps"]:
        return ""
    limits = ["< " + words.time(ns) for ns in data["gap_limits"]] + ["longer"]
    whole = sum(ns for _, ns in data["gap_lengths"])
    rows = [[limit, _count(count), _ns(ns), _percent(ns, whole)] for limit, (count, ns) in zip(limits, data["gap_lengths"]) if count]
    out = _table([("length of the gap", False), ("gaps", True), ("time", True), ("of all gaps", True)], rows, sortable=False)
    longest = [
        [
            text(gap["device"]),
            (f"{(gap['ts'] - data['begins']) / 1e9:.6f} s", gap["ts"]),
            _ns(gap["dur"]),
            _named(gap["doing"]) if gap["doing"] else "in no slice",
            _ns(gap["own"]),
            _ns(gap["mpi"]),
            _ns(gap["feeding"]),
        ]
        for gap in data["gaps"]
    ]
    columns = [
        ("device", False),
        ("begins at", True),
        ("length", True),
        ("host in its middle", False),
        ("own code", True),
        ("MPI", True),
        ("calls", True),
    ]
    return out + "<h3>The longest</h3>" + _table(columns, longest)


def _devices(data):
    rows = []
    for device in data["devices"][:ROWS_MAX]:
        busy = max(device["busy"], 1)
        mean = sum(int(level) * ns for level, ns in device["at_once"].items()) / busy
        once = ", ".join(
            f"{level}{'+' if level == '8' else ''}: {words.share(ns / busy)}" for level, ns in sorted(device["at_once"].items())
        )
        rows.append(
            [
                f"{text(device['name'])}<br><span class=dim>{text(device['process'])}</span>",
                _percent(device["busy"], device["span"]),
                _ns(device["kernel"] + device["both"]),
                _ns(device["copy"] + device["both"]),
                _ns(device["both"]),
                (f"{mean:.2f}", f"{mean:.4f}"),
                once,
            ]
        )
    columns = [("device", False), ("busy", True), ("kernels", True), ("copies", True), ("both at once", True), ("mean at once", True)]
    columns.append(("so many commands at once, of its busy time", False))
    return _table(columns, rows) + _more(len(data["devices"]) + data["devices_more"])


def _steps(data):
    out = []
    for drawn in data["drawn"]:
        found = drawn["steps"]
        if not found or len(out) >= 8:
            continue
        label = name(data["processes"][drawn["process"]]["label"])
        line = f"{len(found['rows'])} steps {_named(found['name'])}, median {words.time(found['median'])}; {found['beyond']} took longer than {words.time(found['limit'])}."
        rows = [
            [
                (f"{one['number']}", one["number"]),
                (f"{(one['ts'] - data['begins']) / 1e9:.6f} s", one["ts"]),
                _ns(one["dur"]),
                "<br>".join(
                    f"+{words.time(cause['more'])} {_named(cause['name']) if cause['name'] else 'in no call or task'}"
                    for cause in one["longer"]
                ),
            ]
            for one in found["outliers"]
        ]
        columns = [("step", True), ("begins at", True), ("length", True), ("what took longer than in the mean step", False)]
        out.append(f"<h3>{label}</h3><p>{line}</p>{drawing.steps(found)}{_table(columns, rows)}")
    return "".join(out)


def _by_rank(row):
    """A pid that is a text is none."""
    return row["rank"], row["pid"] is not None, row["pid"]


def _ranks(data):
    ranked = [row for row in data["processes"] if row["rank"] is not None]
    if len(ranked) < 2:
        return ""
    ranked.sort(key=_by_rank)
    shown = ranked
    note = ""
    if len(ranked) > ROWS_MAX:
        work = sorted(ranked, key=lambda row: row["kernel"] or row["span"] - row["where"].get("mpi", 0))
        shown = sorted(work[: ROWS_MAX // 2] + work[-ROWS_MAX // 2 :], key=_by_rank)
        note = f'<p class="dim">Of {len(ranked)} ranks those with the least and the most work.</p>'
    longest = max(row["span"] for row in shown)
    rows = []
    for row in shown:
        parts = [(kind, ns, f"{KIND_TEXTS[kind]}: {words.time(ns)}") for kind in KIND_TEXTS if (ns := row["where"].get(kind))]
        median = row["steps"]["median"] if row["steps"] else None
        host = text(row["host"] or "")
        bar = drawing.bar(parts, longest)
        rows.append(
            [
                _count(row["rank"]),
                host,
                _ns(row["span"]),
                _ns(row["where"].get("mpi", 0)),
                _ns(row["kernel"]),
                (words.time(median), median or 0),
                bar,
            ]
        )
    columns = [
        ("rank", True),
        ("host", False),
        ("time", True),
        ("in MPI", True),
        ("kernels", True),
        ("median step", True),
        ("its thread's time", False),
    ]
    return note + _table(columns, rows)


def _memory(data):
    rows = [
        [
            text(row["name"]),
            text(row["process"]),
            _count(row["count"]),
            *((words.number(row[key]), row[key]) for key in ("first", "min", "mean", "max", "last")),
        ]
        for row in data["counters"][:ROWS_MAX]
    ]
    columns = [
        ("counter", False),
        ("process", False),
        ("values", True),
        ("first", True),
        ("least", True),
        ("mean", True),
        ("most", True),
        ("last", True),
    ]
    return _table(columns, rows) + _more(len(data["counters"]) + data["counters_more"])


def _threads(data):
    rows = []
    for process in data["processes"]:
        for thread in process["threads"][: max(ROWS_MAX - len(rows), 0)]:
            span = process["span"]
            title = text(thread["name"] or f"thread {thread['tid']}")
            shares = [_percent(thread[key], span) for key in ("busy", "calls", "wait", "mpi")]
            rows.append([title, text(process["label"]), *shares, _count(thread["launches"])])
    count = sum(len(process["threads"]) + process["threads_more"] for process in data["processes"])
    columns = [
        ("thread", False),
        ("process", False),
        ("busy", True),
        ("in calls", True),
        ("waiting", True),
        ("in MPI", True),
        ("launches and copies", True),
    ]
    return _table(columns, rows) + _more(count, len(rows))


def _overhead(data):
    told = [trace["overhead"] for trace in data["traces"] if trace["overhead"]]
    if not told:
        return "<p>The traces do not tell it, so nothing is subtracted.</p>" if data["subtracted"] else ""
    events = {}
    for one in told:
        for kind, row in one["events"].items():
            total = events.setdefault(kind, [0, 0])
            total[0] += row["count"]
            total[1] += row["count"] * (row["ns"] or 0)
    whole = sum(row["span"] for row in data["processes"])
    sums = {key: sum(one[key] for one in told) for key in ("events_ns", "waited_ns", "commands_ns", "start_ns", "drain_cpu_ns")}
    intro = (
        f"<p>Recording took {words.time(sums['events_ns'])} of the threads' time ({words.share(sums['events_ns'] / max(whole, 1))} of the processes' times together), "
        + (f"work for commands, measured where it happens, {words.time(sums['commands_ns'])}, " if sums["commands_ns"] else "")
        + f"waits for a full ring {words.time(sums['waited_ns'])}, the start of tracing {words.time(sums['start_ns'])}; the drain process used {words.time(sums['drain_cpu_ns'])} of a processor. "
        + (
            "Steps and the tables of calls and tasks are without the first; gaps, findings and devices are as traced."
            if data["subtracted"]
            else ""
        )
        + "</p>"
    )
    rows = [
        [kind, _count(count), (f"{ns / max(count, 1):.1f} ns", ns / max(count, 1)), _ns(round(ns))]
        for kind, (count, ns) in sorted(events.items())
    ]
    return intro + _table([("kind of event", False), ("count", True), ("of one", True), ("of all", True)], rows)


def _traces(data):
    rows = []
    for trace in data["traces"][:ROWS_MAX]:
        end = " ".join(str(part) for part in (trace["end"], trace["status"]) if part is not None)
        lost = words.number(trace["lost"]) if trace["lost"] is not None else "–"
        rows.append(
            [f"<code>{text(trace['path'])}</code>", text(trace["tool"] or ""), text(end), lost, "yes" if trace["complete"] else "NO"]
        )
    out = _table([("trace", False), ("tool", False), ("end", False), ("lost", True), ("complete", False)], rows) + _more(
        len(data["traces"])
    )
    bad = [[f"<code>{text(row['path'])}</code>", text(row["why"])] for row in (data["unusable"] + data["left_out"])[:ROWS_MAX]]
    return out + (("<h3>Left out</h3>" + _table([("file", False), ("why", False)], bad)) if bad else "")


SECTIONS = (
    ("findings", "Findings", _findings),
    ("time", "What the time went into", _where),
    ("timeline", "Timeline", _timeline),
    ("idle", "Idle devices: whose fault", _idle),
    ("kernels", "Kernels", _kernels),
    ("copies", "Copies and other device work", _copies),
    ("calls", "Calls", _calls),
    ("tasks", "Tasks", _tasks),
    ("steps", "Steps", _steps),
    ("gaps", "Gaps on devices", _gaps),
    ("concurrency", "Concurrency", _devices),
    ("ranks", "Ranks", _ranks),
    ("threads", "Threads", _threads),
    ("memory", "Memory and other counters", _memory),
    ("overhead", "What tracing cost", _overhead),
    ("traces", "Traces", _traces),
)

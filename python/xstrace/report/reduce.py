"""Many traces' parts (examine.py) become one report: a dict, which page.py draws and --json prints.

Parts come one at a time, in the order of their paths, so that thousands of ranks need no more memory than what is shown of them.
"""

from __future__ import annotations

from ..cli import printable
from . import findings, words
from .examine import BUCKETS_NS, GAPS_MAX, OTHERS
from .findings import Finding, Limits
from .moments import DRAWN_MAX

NAMES_MAX = 5000
DEVICES_MAX = 500
COUNTERS_MAX = 500
TAKEN = ("calls", "tasks", "kernels", "copies")

IMBALANCE = Finding(
    "imbalance",
    "Ranks have unequal work",
    Limits(2, 0.05),
    """WITH device_ns AS (SELECT process_id, sum(te - ts) AS ns FROM levels WHERE kernels > 0 GROUP BY ALL),
mpi_ns AS (SELECT process_id, sum(te - ts) AS ns FROM host_calls JOIN leads USING (process_id, track_id) WHERE class = 'mpi' GROUP BY ALL)
SELECT p.rank, ends - begins AS span, coalesce(d.ns, 0)::BIGINT AS kernels, coalesce(m.ns, 0)::BIGINT AS mpi,
  (CASE WHEN min(coalesce(d.ns, 0)) OVER () > 0 THEN d.ns ELSE ends - begins - coalesce(m.ns, 0) END)::BIGINT AS work
FROM processes p JOIN spans USING (process_id) LEFT JOIN device_ns d USING (process_id) LEFT JOIN mpi_ns m USING (process_id)
WHERE p.rank IS NOT NULL ORDER BY work DESC""",
    "Rank {rank} has {work:ns} of work ({kind}); the mean of {n:n} ranks is {mean:ns}. The others wait for it: equal work would save {cost:ns}.",
    "Divide the work by its cost, not by its count; look at what rank {rank} does more of than the others.",
    "of the longest rank",
)
COMMUNICATION = Finding(
    "communication",
    "Ranks spend their time in MPI",
    Limits(2, 0.10),
    """SELECT p.rank, sum(te - ts)::BIGINT AS mpi FROM host_calls h JOIN leads USING (process_id, track_id) JOIN processes p USING (process_id)
WHERE class = 'mpi' AND p.rank IS NOT NULL GROUP BY ALL ORDER BY mpi""",
    "Even rank {rank}, which spends the least time in MPI, is in it for {cost:ns}; most of that in {call}.",
    "Send fewer and larger messages, overlap them with work (non-blocking calls), replace many point-to-point messages by one collective.",
)
INCOMPLETE = Finding(
    "incomplete-trace",
    "A trace is not complete",
    Limits(1, 0),
    "SELECT path, ended, status, lost, complete FROM traces WHERE NOT complete",
    "{n:n} trace(s) lack events (records lost, the file cut, the program killed): their times are those of what is there.",
    "Trace again with a larger --ring-size or --backlog when records were lost; look at the end of the run when it was killed.",
)
ALL = {finding.id: finding for finding in (*findings.FINDINGS, findings.OUTLIERS, IMBALANCE, COMMUNICATION, INCOMPLETE)}


class Reduction:
    """add() each part, then finish() once."""

    def __init__(self, version, subtracted=False):
        self.data = {
            "tool": "xstrace-report",
            "version": version,
            "subtracted": subtracted,
            "traces": [],
            "unusable": [],
            "left_out": [],
            "processes": [],
            "where": {},
            "findings": [],
            "lead_calls": {},
            **{name: {} for name in TAKEN},
            "devices": [],
            "devices_more": 0,
            "idle": {},
            "gap_limits": list(BUCKETS_NS),
            "gap_lengths": [[0, 0] for _ in range(len(BUCKETS_NS) + 1)],
            "gaps": [],
            "counters": [],
            "counters_more": 0,
            "drawn": [],
        }
        self._fired = {}
        self.is_lossy = False  # was something of a trace that could be used left out?

    def unusable(self, path, why):
        """A trace that could not be read."""
        self.data["unusable"].append({"path": path, "why": why})

    def add(self, part):
        """Takes what examine() has told of one trace."""
        data = self.data
        data["traces"].append(part["trace"])
        self.is_lossy |= part["is_lossy"]
        # of those that were cut alone a finding tells
        front = f"{printable(part['trace']['path'])}: "
        data["left_out"] += [{"path": part["trace"]["path"], "why": line.removeprefix(front)} for line in part["faults"] if part["is_lossy"]]
        for process in part["processes"]:
            number = len(data["processes"])
            label = label_of(process)
            row = self._process(process, label)
            data["processes"].append(row)
            for section in (*TAKEN, "lead_calls"):
                _merge(data[section], process[section])
            for device in process["devices"]:
                self._device(device, label)
            room = COUNTERS_MAX - len(data["counters"])
            data["counters"] += [{"process": label, **counter} for counter in process["counters"][:room]]
            data["counters_more"] += max(len(process["counters"]) - room, 0)
            if len(data["drawn"]) < DRAWN_MAX:
                data["drawn"].append(
                    {
                        "process": number,
                        "begins": process["begins"],
                        "ends": process["ends"],
                        "timeline": process["timeline"],
                        "steps": process["steps"],
                    }
                )
            for fired in process["findings"]:
                self._fired.setdefault(fired["id"], []).append((fired, row))

    def _process(self, process, label):
        span = process["ends"] - process["begins"]
        classes = {}
        for call in process["lead_calls"]:
            classes[call["class"]] = classes.get(call["class"], 0) + call["ns"]
        lead = process["lead"]
        classes["task"] = max(lead["busy"] - sum(classes.values()), 0) if lead else 0
        if lead and lead["cost"]:
            classes["tracing"] = lead["cost"]
        classes["own"] = max(span - sum(classes.values()), 0)
        for name, ns in classes.items():
            self.data["where"][name] = self.data["where"].get(name, 0) + ns
        steps = process["steps"]
        devices = process["devices"]
        return {
            "label": label,
            "trace": process["trace"],
            **{key: process[key] for key in ("name", "host", "rank", "pid", "begins", "ends")},
            "span": span,
            "lead": lead and {key: lead[key] for key in ("tid", "name")},
            "threads": process["threads"],
            "threads_more": process["threads_more"],
            "where": classes,
            "kernel": sum(device["kernel"] + device["both"] for device in devices),
            "busy": sum(device["busy"] for device in devices),
            "devices": len(devices),
            "mpi_call": next((call["name"] for call in process["lead_calls"] if call["class"] == "mpi"), None),
            "steps": steps and {key: steps[key] for key in ("name", "median", "beyond", "cost", "count")},
        }

    def _device(self, device, label):
        data = self.data
        for row in device.pop("idle"):
            key = (row["class"], row["name"])
            data["idle"][key] = data["idle"].get(key, 0) + row["ns"]
        for total, (count, ns) in zip(data["gap_lengths"], device.pop("lengths")):
            total[0] += count
            total[1] += ns
        gaps = [{**gap, "device": device["name"], "process": label} for gap in device.pop("gaps")]
        data["gaps"] = sorted(data["gaps"] + gaps, key=lambda gap: -gap["dur"])[:GAPS_MAX]
        if len(data["devices"]) < DEVICES_MAX:
            data["devices"].append({**device, "process": label})
        else:
            data["devices_more"] += 1

    # ---- what all of them tell together ----

    def finish(self):
        """The report's data; plain values alone."""
        data = self.data
        processes = data["processes"]
        data["begins"] = min((row["begins"] for row in processes), default=0)
        data["ends"] = max((row["ends"] for row in processes), default=0)
        data["span"] = data["ends"] - data["begins"]
        for section in (*TAKEN, "lead_calls"):
            rows = sorted(data[section].values(), key=lambda row: (-row.get("self", row["ns"]), row["name"]))
            data[section] = rows[:NAMES_MAX]
        data["idle"] = [
            {"class": kind, "name": name, "ns": ns} for (kind, name), ns in sorted(data["idle"].items(), key=lambda row: -row[1])
        ][:NAMES_MAX]
        for id, fired in self._fired.items():
            data["findings"].append(_merged(ALL[id], fired))
        ranks = _ranks(processes)
        data["findings"] += filter(None, (self._imbalance(ranks), self._communication(ranks), self._incomplete()))
        data["findings"].sort(key=lambda finding: (-finding["share"], finding["id"]))
        return data

    def _imbalance(self, ranks):
        if len(ranks) < IMBALANCE.limits.n:
            return None
        on_devices = all(row["kernel"] for row in ranks)
        works = [row["kernel"] if on_devices else row["span"] - row["where"].get("mpi", 0) for row in ranks]
        most, mean, span = max(works), sum(works) // len(works), max(row["span"] for row in ranks)
        if most - mean < IMBALANCE.limits.share * span:
            return None
        worst = ranks[works.index(most)]
        kind = "kernels" if on_devices else "time outside MPI"
        return self._of_ranks(IMBALANCE, ranks, worst, most - mean, span, {"work": most, "mean": mean, "kind": kind})

    def _communication(self, ranks):
        if len(ranks) < COMMUNICATION.limits.n:
            return None
        least = min(ranks, key=lambda row: row["where"].get("mpi", 0) / max(row["span"], 1))
        ns = least["where"].get("mpi", 0)
        if not ns or ns < COMMUNICATION.limits.share * least["span"]:
            return None
        return self._of_ranks(COMMUNICATION, ranks, least, ns, least["span"], {"call": least["mpi_call"]})

    def _of_ranks(self, finding, ranks, worst, cost, span, detail):
        place = {"ts": worst["begins"], "dur": worst["span"], "thread": None, "tid": None, "pid": worst["pid"], "trace": worst["trace"]}
        detail = {**detail, "rank": worst["rank"], "n": len(ranks), "cost": cost}
        return _told(finding, len(ranks), cost, cost / max(span, 1), worst["label"], place, detail, len(ranks), None)

    def _incomplete(self):
        bad = [trace for trace in self.data["traces"] if trace["complete"] is False]
        if not bad:
            return None
        place = {"ts": None, "dur": None, "thread": None, "tid": None, "pid": None, "trace": bad[0]["path"]}
        return _told(INCOMPLETE, len(bad), 0, 0.0, bad[0]["path"], place, {"n": len(bad)}, len(bad), None)


def label_of(process):
    """What a process is called in the report."""
    name = process["name"] or f"pid {process['pid']}"
    return name if process["rank"] is None or "RANK" in name else f"RANK {process['rank']} {name}"


def _merge(rows, more):
    for one in more:
        row = rows.get((one.get("class"), one["name"]))
        if row is None:
            if len(rows) >= 4 * NAMES_MAX:
                one = {**one, "name": OTHERS, "class": "other"} if "class" in one else {**one, "name": OTHERS}
                row = rows.get((one.get("class"), OTHERS))
            if row is None:
                rows[one.get("class"), one["name"]] = dict(one)
                continue
        for key, value in one.items():
            if key in ("count", "ns", "self", "bytes"):
                row[key] += value
        if "min" in one:
            row["min"], row["max"] = min(row["min"], one["min"]), max(row["max"], one["max"])


def _ranks(processes):
    """One process of each rank: the one that lasts longest."""
    found = {}
    for row in processes:
        if row["rank"] is not None and (row["rank"] not in found or found[row["rank"]]["span"] < row["span"]):
            found[row["rank"]] = row
    return [found[rank] for rank in sorted(found)]


def _merged(finding, fired):
    """One finding of all processes for which it fired; its place and sentence are those of the worst."""
    worst, process = max(fired, key=lambda pair: pair[0]["share"])
    place = {**worst["place"], "trace": process["trace"]}
    detail = {**worst["detail"], "n": worst["n"], "cost": worst["cost"]}
    total = sum(one["n"] for one, _ in fired)
    return _told(finding, total, worst["cost"], worst["share"], process["label"], place, detail, len(fired), worst["sql"])


def _told(finding, n, cost, share, label, place, detail, processes, sql):
    return {
        "id": finding.id,
        "title": finding.title,
        "n": n,
        "cost": cost,
        "share": share,
        "share_of": finding.effect,
        "process": label,
        "processes": processes,
        "place": place,
        "detail": detail,
        "text": words.filled(finding.says, detail),
        "do": words.filled(finding.do, detail),
        "sql": sql or finding.sql,
    }

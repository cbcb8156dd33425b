"""The page's pictures: SVG that needs no script. Colours are classes of style.py."""

from __future__ import annotations

from html import escape

from . import words
from .moments import BINS

WIDTH = 1000
LEFT = 250  # where the time axis begins: names stand before it
ROW = 16
NAME_MAX = 40  # characters of a name that have room
ROWS_MAX = 60
STEPS_MAX = 1000
STACK = ("kernel", "copy", "wait", "mpi", "build", "call", "task")
LEGEND = {
    "kernel": "kernels",
    "copy": "copies and other device work",
    "wait": "waiting for a device",
    "mpi": "in MPI",
    "build": "building device code",
    "call": "other API calls",
    "task": "the program's own tasks",
}


def bar(parts, total):
    """A bar of parts [(class, value, text)], as long as the total."""
    out, x = [], 0.0
    for kind, value, text in parts:
        width = WIDTH * value / total if total else 0
        if width >= 0.05:
            out.append(f'<rect class="s-{kind}" x="{x:.1f}" y="0" width="{width:.1f}" height="22"><title>{escape(text)}</title></rect>')
        x += width
    return f'<svg viewBox="0 0 {WIDTH} 22" role="img" aria-label="{escape("; ".join(text for _, _, text in parts))}">{"".join(out)}</svg>'


def timeline(drawn, processes, begins, ends):
    """Rows of tracks over the time of the report; None when there is nothing to draw."""
    rows, out = 0, []
    span = max(ends - begins, 1)
    scale = (WIDTH - LEFT) / span
    states = set()
    for process in drawn:
        label = processes[process["process"]]["label"]
        if rows >= ROWS_MAX or not process["timeline"]:
            continue
        out.append(f'<text x="0" y="{rows * ROW + 12}" class="faint">{_short(label, 120)}</text>')
        rows += 1
        x, part = LEFT + (process["begins"] - begins) * scale, (process["ends"] - process["begins"]) * scale / BINS
        for track in process["timeline"][: ROWS_MAX - rows + 1]:
            name = f"{track['device']}: {track['name']}" if track["device"] else track["name"]
            out.append(f'<text x="8" y="{rows * ROW + 12}">{_short(name, NAME_MAX)}</text>')
            out += _track(track["states"], x, part, rows * ROW + 2)
            states |= track["states"].keys()
            rows += 1
    if not rows:
        return None
    height = rows * ROW + 18
    axis = "".join(_tick(LEFT + (WIDTH - LEFT) * n / 5, height, words.time(span * n // 5), n) for n in range(6))
    legend = "".join(f'<span><i class="key s-{state}"></i>{text}</span>' for state, text in LEGEND.items() if state in states)
    picture = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="How busy each track was over time">{axis}{"".join(out)}</svg>'
    return f'<p class="legend">{legend}</p>{picture}'


def _tick(x, height, text, n):
    anchor = ("start", "middle", "end")[(n > 0) + (n == 5)]
    line = f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 14}"/>'
    return f'{line}<text class="faint" x="{x:.1f}" y="{height - 2}" text-anchor="{anchor}">{text}</text>'


def _track(states, x, part, top):
    """One path for each state: its share of each part of the time, stacked."""
    inner = ROW - 4
    floor = [0.0] * BINS
    for state in STACK:
        shares = states.get(state)
        if not shares or not any(shares):
            continue
        path = []
        for n, share in enumerate(shares):
            height = inner * min(share, 1000) / 1000
            if height <= 0:
                continue
            bottom = top + inner - floor[n]
            height = min(height, inner - floor[n])
            path.append(f"M{x + n * part:.1f} {bottom:.1f}h{part + 0.2:.2f}v{-height:.1f}h{-part - 0.2:.2f}z")
            floor[n] += height
        yield f'<path class="s-{state}" d="{"".join(path)}"/>'


def steps(found):
    """A bar for each step, as high as it is long; those beyond the limit in another colour."""
    lengths = [dur for _, dur, _ in found["rows"]]
    devices = [device for _, _, device in found["rows"]]
    group = -(-len(lengths) // STEPS_MAX)  # so many in one bar: the longest of them
    shown = [max(range(at, min(at + group, len(lengths))), key=lengths.__getitem__) for at in range(0, len(lengths), group)]
    highest, wide, high = max(max(lengths), 1), WIDTH / len(shown), 120
    out = []
    for place, n in enumerate(shown):
        height = high * lengths[n] / highest
        kind = "bad" if lengths[n] > found["limit"] else "call"
        text = f"step {n}: {words.time(lengths[n])}" + (f", device busy {words.time(devices[n])}" if devices[n] is not None else "")
        out.append(
            f'<rect class="s-{kind}" x="{place * wide:.2f}" y="{high - height:.1f}" width="{max(wide * 0.85, 0.3):.2f}" height="{height:.1f}"><title>{text}</title></rect>'
        )
    median = high - high * found["median"] / highest
    out.append(f'<line class="axis" x1="0" x2="{WIDTH}" y1="{median:.1f}" y2="{median:.1f}"/>')
    label = f"{len(lengths)} steps, median {words.time(found['median'])}, longest {words.time(highest)}"
    return f'<svg viewBox="0 0 {WIDTH} {high}" role="img" aria-label="{label}">{"".join(out)}</svg>'


def _short(text, width):
    text = words.name(text)
    return escape(text if len(text) <= width else text[: width * 2 // 3 - 1] + "…" + text[-width // 3 :])

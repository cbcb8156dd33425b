"""Charts of metrics: pages of a PDF (by matplotlib), or one HTML file that needs nothing else (by plotly).

put([Chart("Stalls", "Sample", "%", {"XVE_STALL[%]": [1, 2, 3]}), ["a page", "of text"]], "out.pdf")
"""

from __future__ import annotations

import html
import importlib
import textwrap
import warnings

from .cli import printable
from .running import written

LINES = 72  # of text, on a page
WIDTH = 130
LABELS = 40  # on an axis; more cannot be read
PACKAGES = {"pdf": "matplotlib", "html": "plotly"}


class ChartsError(Exception):
    """What draws is not installed; the text says what to install."""


class Chart:
    """series: sequences of numbers by name, all of one length; labels: what stands at the x axis, None: 0, 1, ...

    stacked: bars upon each other, for parts of a sum; else lines, or bars beside each other where there is one value of each.
    """

    def __init__(self, title, xlabel, ylabel, series, labels=None, stacked=False):
        self.title, self.xlabel, self.ylabel, self.series, self.labels = title, xlabel, ylabel, series, labels
        self.stacked = stacked

    def __len__(self):
        return max(map(len, self.series.values()), default=0)


def put(pages, path):
    """Writes the pages (each a Chart or a list of lines) to `path`: HTML if that ends so, else PDF.

    Raises OSError where it cannot be written, ChartsError where what draws is missing.
    """
    if str(path).lower().endswith((".html", ".htm")):
        text = page(pages)
        with written(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    else:
        _put_pdf(pages, path)


def page(pages, title="Performance Metrics"):
    """The pages as the text of one HTML document (str) without any outer reference. Raises ChartsError."""
    graphs, said = _need("plotly.graph_objects", "html"), []
    library = True
    for one in pages:
        if isinstance(one, Chart):
            made = graphs.Figure([_trace(graphs, one, name, values) for name, values in one.series.items()])
            made.update_layout(
                title={"text": html.escape(one.title).replace("\n", "<br>")},
                xaxis_title=html.escape(one.xlabel),
                yaxis_title=html.escape(one.ylabel),
                barmode="stack" if one.stacked else "group",
                showlegend=True,
                yaxis_rangemode="tozero",
                xaxis_type="category" if one.stacked or len(one) < 2 else "linear",
            )
            said.append(_html(made, library))
            library = False
        elif hasattr(one, "to_html"):
            said.append(_html(one, library))
            library = False
        else:
            said.append(f"<pre>{html.escape(chr(10).join(one))}</pre>")
    return f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{html.escape(title)}</title></head>\n<body>\n{chr(10).join(said)}\n</body></html>\n'


def figure(title, xlabel, ylabel, drawn):
    """A page of points and lines with two logarithmic axes, for page(). Raises ChartsError.

    drawn: dicts with kind ("line" or "points"), name, x and y (one length each); of points also text, symbols (one each) and size.
    """
    graphs = _need("plotly.graph_objects", "html")
    made = graphs.Figure(
        layout={"title": {"text": html.escape(title)}, "height": 850, "showlegend": True, "legend": {"y": -0.12, "yanchor": "top"}}
    )
    made.update_xaxes(type="log", title=html.escape(xlabel))
    made.update_yaxes(type="log", title=html.escape(ylabel))
    for one in drawn:
        name = html.escape(one["name"])
        if one["kind"] == "line":
            made.add_scatter(x=one["x"], y=one["y"], name=name, mode="lines")
        else:
            text = ["<br>".join(map(html.escape, line.split("<br>"))) for line in one["text"]]
            marker = {"size": one["size"], "symbol": one["symbols"], "opacity": 0.7}
            made.add_scatter(x=one["x"], y=one["y"], name=name, mode="markers", hovertext=text, hoverinfo="text+x+y", marker=marker)
    return made


def _html(figure, library):
    return figure.to_html(full_html=False, include_plotlyjs=library, config={"displaylogo": False})


def _trace(graphs, chart, name, values):
    x = list(range(len(values))) if chart.labels is None else list(chart.labels)
    if chart.stacked or len(values) < 2:
        return graphs.Bar(x=x, y=list(values), name=html.escape(name))
    return graphs.Scatter(x=x, y=list(values), name=html.escape(name), mode="lines")


def _need(module, form):
    try:
        return importlib.import_module(module)
    except ImportError:
        package = PACKAGES[form]
        raise ChartsError(f"{form.upper()} needs {package}: pip install {package}") from None


def _put_pdf(pages, path):
    matplotlib = _need("matplotlib", "pdf")
    matplotlib.use("pdf")  # no display
    plots, document = _need("matplotlib.pyplot", "pdf"), _need("matplotlib.backends.backend_pdf", "pdf")
    with warnings.catch_warnings(), written(path) as file, document.PdfPages(file) as pdf:
        warnings.simplefilter("ignore")  # of characters that its font has not: the page shows where they are
        for one in pages:
            for figure in [_figure(plots, one)] if isinstance(one, Chart) else _text(plots, one):
                pdf.savefig(figure)
                plots.close(figure)


def _figure(plots, chart):
    figure, axes = plots.subplots(figsize=(11, 6))
    below = [0.0] * len(chart)
    for at, (name, values) in enumerate(chart.series.items()):
        if chart.stacked:
            axes.bar(range(len(values)), list(values), bottom=below, label=_plain(name))
            below = [low + value for low, value in zip(below, values, strict=True)]
        elif len(values) > 1:
            axes.plot(list(values), label=_plain(name), marker="." if len(values) < LABELS else None)
        else:
            axes.bar([at], list(values), label=_plain(name))
    if chart.labels is not None:
        step = -(-len(chart) // LABELS)
        axes.set_xticks(range(0, len(chart), step), labels=list(map(_plain, list(chart.labels)[::step])), rotation=90, fontsize=6)
    elif len(chart) <= 1:
        axes.set_xticks([])
    axes.set_title(_plain("\n".join(textwrap.wrap(chart.title.replace("\n", " "), 110)[:6])), fontsize=9)
    axes.set_xlabel(_plain(chart.xlabel))
    axes.set_ylabel(_plain(chart.ylabel))
    if axes.get_ylim()[0] > 0:
        axes.set_ylim(bottom=0)  # half of the height is half of the value
    axes.grid(True, axis="y", alpha=0.4)
    axes.legend(loc="best", fontsize=7)
    figure.tight_layout()
    return figure


def _text(plots, lines):
    pieces = [piece for line in lines for piece in textwrap.wrap(line, WIDTH, drop_whitespace=False) or [""]]
    for first in range(0, len(pieces), LINES):
        figure = plots.figure(figsize=(11, 8.5))
        figure.text(0.03, 0.97, _plain("\n".join(pieces[first : first + LINES])), family="monospace", fontsize=6.5, va="top")
        yield figure


def _plain(text):
    """Without formulas, and without what no font has: matplotlib would print it as it is."""
    return "\n".join(map(printable, str(text).split("\n"))).replace("$", r"\$")

"""The page's looks and its one script. Both stand in the page itself; its policy lets nothing else run or load (page.py)."""

CSS = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #57606a; --paper: #fff; --line: #d0d7de; --soft: #f6f8fa; --accent: #0b57d0;
  --kernel: #2f7d4f; --copy: #d98a00; --both: #86a93c; --wait: #c0392b; --mpi: #7b4fa3; --call: #2f6fb0; --build: #b5548f; --task: #7aa6d6; --own: #9aa4ae; --idle: #e4e7eb; --bad: #b42318; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --dim: #9aa4ae; --paper: #14171a; --line: #383e45; --soft: #1d2125; --accent: #8ab4f8;
    --kernel: #4fae78; --copy: #e8a633; --both: #a9cc5f; --wait: #e5675a; --mpi: #ac85d3; --call: #5b9bd8; --build: #d583b5; --task: #35597d; --own: #6b747d; --idle: #2b3036; --bad: #ff8a7a; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem 1.5rem 4rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.5rem; margin: .5rem 0 0; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
h3 { font-size: 1rem; margin: 0; } p { margin: .3rem 0; max-width: 62rem; } h1, h3, p { overflow-wrap: anywhere; } a { color: var(--accent); }
.dim { color: var(--dim); } .lead { font-size: 1.05rem; } .wide { overflow-x: auto; }
nav a { margin-right: .9rem; white-space: nowrap; }
code, pre, .name { font-family: ui-monospace, monospace; font-size: .86em; }
.name { overflow-wrap: anywhere; unicode-bidi: isolate; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 4px; padding: .6rem; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .4rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .18rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; white-space: nowrap; } td.n, th.n { text-align: right; white-space: nowrap; }
th button { all: unset; cursor: pointer; font-weight: 600; } th button:focus-visible { outline: 2px solid var(--accent); }
th[aria-sort=descending] button::after { content: " \\2193"; } th[aria-sort=ascending] button::after { content: " \\2191"; }
details summary { cursor: pointer; color: var(--accent); }
.finding { border: 1px solid var(--line); border-left: 5px solid var(--wait); border-radius: 4px; padding: .6rem .9rem; margin: .7rem 0; break-inside: avoid; }
.finding.note { border-left-color: var(--own); }
.finding .head { display: flex; gap: .8rem; align-items: baseline; } .cost { font-weight: 700; white-space: nowrap; }
svg { display: block; width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: var(--ink); } svg .faint { fill: var(--dim); }
.s-kernel { fill: var(--kernel); background: var(--kernel); } .s-copy { fill: var(--copy); background: var(--copy); } .s-both { fill: var(--both); background: var(--both); }
.s-wait { fill: var(--wait); background: var(--wait); } .s-poll { fill: var(--wait); background: var(--wait); fill-opacity: .7; } .s-mpi { fill: var(--mpi); background: var(--mpi); }
.s-build { fill: var(--build); background: var(--build); } .s-call, .s-launch, .s-alloc { fill: var(--call); background: var(--call); } .s-task { fill: var(--task); background: var(--task); }
.s-own, .s-other, .s-tracing { fill: var(--own); background: var(--own); } .s-idle, .s-between, .s-before, .s-after { fill: var(--idle); background: var(--idle); } .s-bad { fill: var(--bad); background: var(--bad); }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .35em; vertical-align: -.05em; print-color-adjust: exact; }
.legend span { margin-right: 1rem; white-space: nowrap; } .axis { stroke: var(--line); }
@media print { :root { color-scheme: light; } body { max-width: none; font-size: 11px; padding: 0; } nav, .screen { display: none; } h2 { break-after: avoid; } tr, svg { break-inside: avoid; }
  svg, .finding { print-color-adjust: exact; } a { color: inherit; text-decoration: none; } }
"""

# Sorts a table by the column whose heading is pressed. Without it the tables stay as they are.
JS = """
document.querySelectorAll('table.sort').forEach(function (table) {
  table.querySelectorAll('thead th').forEach(function (head, column) {
    var button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.textContent = '';
    head.appendChild(button);
    button.addEventListener('click', function () {
      var down = head.getAttribute('aria-sort') !== 'descending', body = table.tBodies[0];
      table.querySelectorAll('thead th').forEach(function (other) { other.removeAttribute('aria-sort'); });
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      var rows = Array.prototype.slice.call(body.rows);
      rows.sort(function (a, b) {
        var x = a.cells[column], y = b.cells[column], v = x.dataset.v, w = y.dataset.v;
        var order = v !== undefined && w !== undefined ? v - w : x.textContent < y.textContent ? -1 : x.textContent > y.textContent ? 1 : 0;
        return down ? -order : order;
      });
      rows.forEach(function (row) { body.appendChild(row); });
    });
  });
});
"""

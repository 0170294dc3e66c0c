"""How a report looks: readable on paper, in the dark, and without any font of its own."""

from __future__ import annotations

PHASES = ("#1f77b4", "#2c8c46", "#b98a00", "#7a3aa8", "#d0621a", "#66727f")
LINES = ("#1f77b4", "#d0621a", "#2c8c46", "#b3232b", "#7a3aa8", "#8c6d00", "#c03a8a", "#66727f")
HELD = "#d89a6a"

STYLE = (
    ":root{color-scheme:light dark;--line:#8884}"
    "body{font:14px/1.5 system-ui,'Noto Sans','Noto Sans CJK SC',sans-serif;max-width:1120px;margin:2em auto;"
    "padding:0 1em;overflow-wrap:anywhere}"
    "b,code,li,span,td,dd{unicode-bidi:isolate}"
    "h1{font-size:1.5em;margin:0 0 .4em}h2{font-size:1.1em;margin:1.6em 0 .5em}h3{font-size:1em;margin:1em 0 .2em}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:0}dt{opacity:.65}dd{margin:0}"
    "pre,code{font:12px/1.45 ui-monospace,Menlo,Consolas,'Noto Sans Mono CJK SC',monospace}"
    "pre{overflow-x:auto;padding:.7em;border:1px solid var(--line);border-radius:4px;white-space:pre-wrap;"
    "word-break:break-word}"
    "table{border-collapse:collapse;font-size:12.5px;width:100%}td,th{text-align:left;padding:.15em .6em;"
    "border-bottom:1px solid var(--line);vertical-align:top;word-break:break-word}th{opacity:.65;font-weight:600}"
    ".cause{border-left:4px solid #b3232b;padding-left:1em}.legend{display:flex;flex-wrap:wrap;gap:.2em 1.2em;"
    "margin-bottom:.4em}"
    ".legend i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}svg{width:100%;height:auto;display:block}"
    "svg text{font-size:11px;fill:currentColor}.label{opacity:.75}.time{text-anchor:middle;opacity:.65}"
    ".tick{stroke:var(--line);fill:none}polyline{fill:none;stroke-width:1.5}"
    "footer{margin:2.5em 0;opacity:.6;font-size:12px}"
    ".idle{stroke:Canvas;stroke-opacity:.62}.half{opacity:.38}"
    f".hold{{stroke:{HELD};stroke-opacity:.55}}.bhold{{background:{HELD};opacity:.55}}.launcher{{stroke:#8888}}"
    ".s-held,.s-failed,.s-lost{color:#d0393f}.s-running,.s-finished{color:#2c8c46}"
    + "".join(f".p{number}{{stroke:{hue}}}.b{number}{{background:{hue}}}" for number, hue in enumerate(PHASES))
    + "".join(f".l{number}{{stroke:{hue}}}.c{number}{{background:{hue}}}" for number, hue in enumerate(LINES))
)

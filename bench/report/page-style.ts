import { Html } from "./html.ts";

/** Colours only repeat what marks, shapes and words say. */
export const STYLE = new Html(`<style>
:root {
  color-scheme: light dark;
  --text: #1b1f24; --faint: #59636e; --ground: #ffffff; --line: #d1d9e0; --good: #1a7f37; --bad: #b3261e; --mark: #0757a8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e6edf3; --faint: #9198a1; --ground: #0d1117; --line: #3d444d; --good: #3fb950; --bad: #ff7b72; --mark: #6cb6ff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground);
}
h1, h2, h3 { line-height: 1.25; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: 0.25rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.75rem 0.3rem 0; border-bottom: 1px solid var(--line); }
.hint { color: var(--faint); font-size: 0.85rem; }
.holds { color: var(--good); }
.missed { color: var(--bad); font-weight: 600; }
.holds, .missed, .unclear, .none { white-space: nowrap; }
.chart { display: block; width: 100%; max-width: 44rem; margin: 0.5rem 0; }
.chart text { font: 12px system-ui, sans-serif; fill: var(--text); }
.chart .hint { fill: var(--faint); font-size: 11px; }
.chart line { stroke: var(--text); }
.chart .grid { stroke: var(--line); }
.chart .one { stroke: var(--faint); stroke-dasharray: 3 3; }
.chart .interval { stroke-width: 2; }
.chart .better { fill: var(--good); }
.chart .worse { fill: var(--bad); }
.chart .either { fill: var(--ground); stroke: var(--text); stroke-width: 2; }
.chart .curve { fill: none; stroke: var(--mark); stroke-width: 2; }
.chart .mark { fill: var(--mark); }
@media print {
  :root {
    --text: #000; --faint: #333; --ground: #fff; --line: #999; --good: #000; --bad: #000; --mark: #000;
  }
  body { margin: 0; max-width: none; font-size: 10pt; }
  .wide { overflow: visible; }
  article, tr, .chart { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  thead { display: table-header-group; }
}
</style>`);

import type { Section } from "./sections.ts";
import { escapeHtml } from "../../server/escape-html.ts";

/**
 * A plan as one page: nothing is loaded from elsewhere, and nothing runs. It can be printed, and is read without colour.
 */
export function htmlOf(title: string, sections: readonly Section[], data: unknown): string {
  return [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body><main>`,
    `<h1>${escapeHtml(title)}</h1>`,
    fragmentOf(sections),
    `<details><summary>The plan as JSON</summary><pre>${escapeHtml(JSON.stringify(data, undefined, 2))}</pre></details>`,
    "</main></body></html>",
    "",
  ].join("\n");
}

/** The sections alone, for a page that holds more than a plan. */
export function fragmentOf(sections: readonly Section[]): string {
  return sections
    .map((section) => `<section><h2>${escapeHtml(section.title)}</h2>${bodyOf(section)}</section>`)
    .join("\n");
}

function bodyOf(section: Section): string {
  if ("sentences" in section)
    return `<ul>${section.sentences.map((each) => `<li>${escapeHtml(each)}</li>`).join("")}</ul>`;
  const head = section.head.map((each) => `<th scope="col">${escapeHtml(each)}</th>`).join("");
  const rows = section.rows.map(([first = "", ...others]) => {
    const cells = others.map((each) => `<td>${escapeHtml(each)}</td>`).join("");
    return `<tr><th scope="row">${escapeHtml(first)}</th>${cells}</tr>`;
  });
  return `<table><thead><tr>${head}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff; --rule: #c8c8c8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #161616; --rule: #4a4a4a; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--rule); }
th:first-child { text-align: left; } thead th { border-bottom: 2px solid var(--ink); }
tbody th { font-weight: 400; } pre { white-space: pre-wrap; font-size: .8rem; }
@media print { body { background: #fff; color: #000; } details { display: none; } section { break-inside: avoid; } }
`;

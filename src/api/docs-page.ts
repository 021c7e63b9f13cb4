import { createHash } from "node:crypto";
import { ERROR_CODES } from "../core/errors.ts";
import type { Role, Route } from "./route.ts";

/** What the page may load: its own style, and nothing else. */
export function docsPagePolicy(): string {
  const style = createHash("sha256").update(STYLE).digest("base64");
  const rest = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  return `default-src 'none'; style-src 'sha256-${style}'; ${rest}`;
}

/** The reference as one page of HTML: no script, no asset from elsewhere, readable on a phone and without a network. */
export function renderDocsPage(routes: readonly Route[], info: { title: string; version: string }): string {
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  const sections = tags.map((tag) => {
    const rows = routes.filter((route) => route.tag === tag).map(renderRoute);
    return `<h2>${escape(tag)}</h2>${rows.join("")}`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escape(info.title)} ${escape(info.version)}: HTTP API</title><style>${STYLE}</style></head>
<body><main><h1>${escape(info.title)} <small>${escape(info.version)}</small></h1>
<p>HTTP API. Machine-readable: <a href="/v1/openapi.json">/v1/openapi.json</a>.</p>
${sections.join("\n")}
<h2 id="errors">Errors</h2><p>Every error is <code>{"error": {"code", "message", "request_id"}}</code>.</p>
${renderErrors()}</main></body></html>
`;
}

const WHO_MAY: Readonly<Record<Role, string>> = {
  none: "open",
  read: "role read",
  write: "role write",
  admin: "role admin",
  worker: "a worker's token",
};

function renderRoute(route: Route): string {
  const inputs = [
    ...renderInputs("path", route.params?.shape),
    ...renderInputs("query", route.query?.shape),
    ...renderInputs("header", route.headers?.shape),
  ];
  const role = WHO_MAY[route.role];
  return `<article><h3><code><b>${route.method}</b> ${escape(route.path)}</code> <small>${role}</small></h3>
<p>${prose(route.summary)}${/[.?!]$/.test(route.summary) ? "" : "."} ${prose(route.description ?? "")}</p>
${inputs.length === 0 ? "" : `<table>${inputs.join("")}</table>`}
${route.body === undefined ? "" : `<p><b>Body</b> (${route.body.types.map((t) => `<code>${escape(t)}</code>`).join(", ")}): ${prose(route.body.description)}</p>`}
${route.body?.example === undefined ? "" : `<pre>${escape(route.body.example)}</pre>`}
<ul>${route.responses.map((r) => `<li><b>${r.status}</b> ${prose(r.description)} ${r.type === undefined ? "" : `<code>${escape(r.type)}</code>`}</li>`).join("")}
${route.errors.map((code) => `<li>${ERROR_CODES[code].status} <a href="#${code}"><code>${code}</code></a></li>`).join("")}</ul></article>`;
}

function renderInputs(place: string, shape: Record<string, unknown> | undefined): string[] {
  return Object.entries(shape ?? {}).map(([name, field]) => {
    const doc = (field as { description?: string }).description ?? "";
    return `<tr><td><code>${escape(name)}</code></td><td>${place}</td><td>${prose(doc)}</td></tr>`;
  });
}

function renderErrors(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, doc }]) =>
      `<tr id="${code}"><td>${status}</td><td><code>${code}</code></td><td>${prose(doc)}</td></tr>`,
  );
  return `<table>${rows.join("")}</table>`;
}

/** Text with `code` in backquotes. */
function prose(text: string): string {
  return escape(text).replace(/`([^`]+)`/g, "<code>$1</code>");
}

/** Text for HTML, between tags or in a quoted attribute. */
export function escape(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (char) => entities[char] ?? char);
}

const STYLE = `
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:0}
main{max-width:52rem;margin:0 auto;padding:1rem}
h2{margin-top:2.5rem;border-bottom:1px solid #8884}
h3{margin-bottom:.3rem;overflow-wrap:anywhere}
small{font-weight:normal;opacity:.7}
code,pre{font:.9em ui-monospace,monospace}
pre{background:#8881;padding:.6rem;overflow:auto}
table{border-collapse:collapse;width:100%}
td{border-top:1px solid #8884;padding:.3rem .6rem .3rem 0;vertical-align:top}
ul{padding-left:1.2rem}`;

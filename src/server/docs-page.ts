import { createHash } from "node:crypto";
import { z } from "zod";
import { ERROR_CODES } from "../core/errors.ts";
import { renderTryForm } from "./docs-try.ts";
import { TRY_SCRIPT } from "./docs-try-script.ts";
import { escapeHtml } from "./escape-html.ts";
import type { Role, Route } from "./route.ts";

/** What the page may load: its own style, its own script and answers of this server, and nothing else. */
export function docsPagePolicy(): string {
  const rest = "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  return `default-src 'none'; style-src '${hashOf(STYLE)}'; script-src '${hashOf(TRY_SCRIPT)}'; ${rest}`;
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/** The reference as one page of HTML: no asset from elsewhere, readable on a phone, without a network and without script. */
export function renderDocsPage(routes: readonly Route[], info: { title: string; version: string }): string {
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  const sections = tags.map((tag) => {
    const rows = routes.filter((route) => route.tag === tag).map(renderRoute);
    return `<h2>${escapeHtml(tag)}</h2>${rows.join("")}`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escapeHtml(info.title)} ${escapeHtml(info.version)}: HTTP API</title><style>${STYLE}</style></head>
<body><main><h1>${escapeHtml(info.title)} <small>${escapeHtml(info.version)}</small></h1>
<p>HTTP API. Machine-readable: <a href="/v1/openapi.json">/v1/openapi.json</a>.</p>
<p><label>Token for trying routes <input id="token" type="password" autocomplete="off" spellcheck="false"></label>
It is kept in this field alone, and sent to this server alone.</p>
${sections.join("\n")}
<h2 id="errors">Errors</h2><p>Every error is <code>{"error": {"code", "message", "request_id"}}</code>.</p>
${renderErrors()}</main><script>${TRY_SCRIPT}</script></body></html>
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
  return `<article><h3><code><b>${route.method}</b> ${escapeHtml(route.path)}</code> <small>${role}</small></h3>
<p>${prose(route.summary)}${/[.?!]$/.test(route.summary) ? "" : "."} ${prose(route.description ?? "")}</p>
${inputs.length === 0 ? "" : `<table>${inputs.join("")}</table>`}
${renderJsonBody(route)}${route.body === undefined ? "" : `<p><b>Body</b> (${route.body.types.map((t) => `<code>${escapeHtml(t)}</code>`).join(", ")}): ${prose(route.body.description)}</p>`}
${route.body?.example === undefined ? "" : `<pre>${escapeHtml(route.body.example)}</pre>`}
<ul>${route.responses.map((r) => `<li><b>${r.status}</b> ${prose(r.description)} ${r.type === undefined ? "" : `<code>${escapeHtml(r.type)}</code>`}</li>`).join("")}
${route.errors.map((code) => `<li>${ERROR_CODES[code].status} <a href="#${code}"><code>${code}</code></a></li>`).join("")}</ul>${renderTryForm(route)}</article>`;
}

/** The fields of a JSON body. */
function renderJsonBody({ json }: Route): string {
  if (json === undefined) return "";
  const schema = z.toJSONSchema(json, { io: "input", unrepresentable: "any" }) as BodySchema;
  const own = schema.$ref === undefined ? schema : schema.$defs?.[schema.$ref.replace("#/$defs/", "")];
  const rows = Object.entries(own?.properties ?? {}).map(([name, { description = "" }]) => {
    const need = own?.required?.includes(name) === true ? "body, required" : "body";
    return `<tr><td><code>${escapeHtml(name)}</code></td><td>${need}</td><td>${prose(description)}</td></tr>`;
  });
  return rows.length === 0 ? "" : `<table>${rows.join("")}</table>`;
}

type BodySchema = {
  $ref?: string;
  $defs?: Record<string, BodySchema>;
  properties?: Record<string, { description?: string }>;
  required?: string[];
};

function renderInputs(place: string, shape: Record<string, unknown> | undefined): string[] {
  return Object.entries(shape ?? {}).map(([name, field]) => {
    const doc = (field as { description?: string }).description ?? "";
    return `<tr><td><code>${escapeHtml(name)}</code></td><td>${place}</td><td>${prose(doc)}</td></tr>`;
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
  return escapeHtml(text).replace(/`([^`]+)`/g, "<code>$1</code>");
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
ul{padding-left:1.2rem}
label{display:block;margin:.4rem 0}
input,textarea{display:block;width:100%;box-sizing:border-box;font:.9em ui-monospace,monospace}
form pre{max-height:24rem;white-space:pre-wrap;overflow-wrap:anywhere}`;

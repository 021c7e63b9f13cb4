import { z } from "zod";
import { escapeHtml } from "./escape-html.ts";
import type { Route } from "./route.ts";

/** The form of a route on the reference page, by which it can be tried: see `docs-try-script.ts`. */
export function renderTryForm(route: Route): string {
  // A form cannot speak with a WebSocket.
  if (route.webSocket === true) return "";
  const inputs = [
    ...renderInputs("path", route.params),
    ...renderInputs("query", route.query),
    ...renderInputs("header", route.headers),
    ...renderBody(route),
  ];
  const form = `data-method="${route.method}" data-path="${escapeHtml(route.path)}" data-type="${escapeHtml(typesOf(route)[0] ?? "")}"`;
  return `<details><summary>Try it</summary><form ${form}>${inputs.join("")}
<p><button>Send</button> <button type="button" hidden>Stop</button></p><pre hidden></pre></form></details>`;
}

function typesOf({ json, body }: Route): readonly string[] {
  return json === undefined ? (body?.types ?? []).filter((type) => type !== "*/*") : ["application/json"];
}

function renderInputs(place: "path" | "query" | "header", schema: z.ZodObject | undefined): string[] {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const isNeeded = place === "path" || !(field as z.ZodType).safeParse(undefined).success;
    const data = `data-in="${place}" data-name="${escapeHtml(name)}"`;
    const attributes = `${data}${isNeeded ? " required" : ""} autocomplete="off" spellcheck="false"`;
    return `<label>${escapeHtml(name)} <small>${place}</small><input ${attributes}></label>`;
  });
}

function renderBody(route: Route): string[] {
  const { json, body } = route;
  if (json === undefined && body === undefined) return [];
  const types = typesOf(route);
  const options = types.map((type) => `<option>${escapeHtml(type)}</option>`).join("");
  const choice = types.length < 2 ? "" : `<label>Content-Type <select data-in="type">${options}</select></label>`;
  const text = json === undefined ? (body?.example ?? "") : skeletonOf(json);
  // The first line break after the tag is not part of what is in it.
  const area = `<textarea data-in="body" rows="6" autocomplete="off" spellcheck="false">\n${escapeHtml(text)}</textarea>`;
  return [choice, `<label>body ${area}</label>`];
}

/** What a body has at least, with empty values: nothing where it may be left out. */
function skeletonOf(json: z.ZodType): string {
  if (json.safeParse(undefined).success) return "";
  const schema = z.toJSONSchema(json, { io: "input", unrepresentable: "any", reused: "inline" });
  const parts = (schema as { $defs?: Record<string, Json> }).$defs ?? {};
  return JSON.stringify(emptyOf(schema, parts, 0), null, 2);
}

type Json = Record<string, unknown>;

/** Schemas may refer to themselves. */
const MOST_DEPTH = 6;

function emptyOf(schema: Json, parts: Readonly<Record<string, Json>>, depth: number): unknown {
  const { $ref: ref, default: byDefault, const: only, enum: choices, anyOf, oneOf, type } = schema;
  if (depth > MOST_DEPTH) return null;
  const part = typeof ref === "string" ? parts[ref.replace("#/$defs/", "")] : undefined;
  if (part !== undefined) return emptyOf(part, parts, depth + 1);
  if (byDefault !== undefined) return byDefault;
  if (only !== undefined) return only;
  const [first] = (choices ?? []) as unknown[];
  if (first !== undefined) return first;
  const [option] = (anyOf ?? oneOf ?? []) as Json[];
  if (option !== undefined) return emptyOf(option, parts, depth + 1);
  switch (type) {
    case "object": {
      const { properties = {}, required = [] } = schema as { properties?: Record<string, Json>; required?: string[] };
      return Object.fromEntries(required.map((name) => [name, emptyOf(properties[name] ?? {}, parts, depth + 1)]));
    }
    case "array":
      return [];
    case "string":
      return "";
    case "number":
    case "integer":
      return 0;
    case "boolean":
      return false;
    default:
      return null;
  }
}

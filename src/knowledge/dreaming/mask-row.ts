import { maskSecrets } from "../memory/secrets.ts";
import { jsonIn } from "../../core/json-text.ts";

const MAX_DEPTH = 64;
const TOO_DEEP = "[nested too deeply]";

/**
 * Masks the secrets in a row of the firehose. Each text is masked as it reads, not as JSON escapes it, for a backslash in
 * front of a quote hides a secret from the forms. So JSON inside a text is parsed, too, and a text is also looked at
 * together with its key, as in `{"password": "…"}`. Returns the value itself where there is nothing to mask: numbers that
 * JavaScript would round keep their digits in the text that it was parsed from.
 */
export function maskRow(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return maskText(value, depth);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return TOO_DEEP;
  if (Array.isArray(value)) {
    const masked = value.map((inner: unknown) => maskRow(inner, depth + 1));
    return masked.every((inner, i) => inner === value[i]) ? value : masked;
  }
  const entries = Object.entries(value);
  const masked = entries.map(([key, inner]): [string, unknown] => {
    const said = maskRow(inner, depth + 1);
    return [maskSecrets(key), typeof said === "string" ? maskNamed(key, said) : said];
  });
  const isSame = masked.every(([key, inner], i) => key === entries[i]?.[0] && inner === entries[i][1]);
  return isSame ? value : Object.fromEntries(masked);
}

function maskText(text: string, depth: number): string {
  const inner = /^\s*[[{"]/u.test(text) ? jsonIn(text) : undefined;
  const masked = maskRow(inner, depth + 1);
  return maskSecrets(masked === inner ? text : JSON.stringify(masked));
}

function maskNamed(name: string, text: string): string {
  const before = `${name}: `;
  const masked = maskSecrets(`${before}${text}`);
  return masked.startsWith(before) ? masked.slice(before.length) : masked;
}

import { CliError, EXIT } from "../../client/failure.ts";

/** Property lists in XML, as launchd reads them. Text reaches the file through `xmlText` alone. */
export type PlistValue = string | number | boolean | readonly PlistValue[] | { readonly [key: string]: PlistValue };

/** @param comment one line without `--` */
export function plistText(value: PlistValue, comment: string): string {
  if (comment.includes("--")) throw new Error("no comment of XML has -- in it");
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    `<!-- ${representable(comment)} -->`,
    '<plist version="1.0">',
    ...linesOf(value, ""),
    "</plist>\n",
  ].join("\n");
}

function linesOf(value: PlistValue, indent: string): string[] {
  const inner = `${indent}  `;
  if (typeof value === "string") return [`${indent}<string>${xmlText(value)}</string>`];
  if (typeof value === "number") return [`${indent}<integer>${Math.trunc(value)}</integer>`];
  if (typeof value === "boolean") return [`${indent}<${value}/>`];
  if (Array.isArray(value)) {
    const items: readonly PlistValue[] = value;
    return [`${indent}<array>`, ...items.flatMap((item) => linesOf(item, inner)), `${indent}</array>`];
  }
  const lines = [`${indent}<dict>`];
  for (const [key, item] of Object.entries(value)) {
    lines.push(`${inner}<key>${xmlText(key)}</key>`, ...linesOf(item, inner));
  }
  return [...lines, `${indent}</dict>`];
}

/** What XML 1.0 can hold (production `Char`); there is no escape for other characters. */
const CHARS = /^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u;

/** Everything but letters, digits and what is plain becomes a reference. */
function xmlText(text: string): string {
  return representable(text).replaceAll(/[^A-Za-z0-9 _@+=:,./{}-]/gu, (char) => `&#${char.codePointAt(0)};`);
}

function representable(text: string): string {
  if (CHARS.test(text)) return text;
  const shown = JSON.stringify(text);
  throw new CliError(`${shown} has a character that no property list can hold: choose another path`, EXIT.usage);
}

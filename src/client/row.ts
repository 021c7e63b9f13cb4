import { CliError } from "./failure.ts";

/** One value of a row: its column, and its JSON text exactly as the server wrote it. */
export type Field = { name: string; raw: string };

/**
 * Cuts a line of NDJSON into its fields. Not `JSON.parse`, which rounds integers beyond 2^53 and puts columns with
 * number-like names (`SELECT 2, 1`) in another order.
 */
export function splitRow(line: string): Field[] {
  const fields: Field[] = [];
  let at = skipSpace(line, expect(line, skipSpace(line, 0), "{"));
  while (line[at] !== "}") {
    const nameEnd = valueEnd(line, at);
    const name = parseString(line.slice(at, nameEnd));
    const start = skipSpace(line, expect(line, skipSpace(line, nameEnd), ":"));
    const end = valueEnd(line, start);
    fields.push({ name, raw: line.slice(start, end) });
    at = skipSpace(line, end);
    if (line[at] === ",") at = skipSpace(line, at + 1);
    else if (line[at] !== "}") throw malformed(line);
  }
  return fields;
}

/** What a field says to people and spreadsheets: the text of strings, the JSON of everything else; null for null. */
export function fieldText(raw: string): string | null {
  if (raw === "null") return null;
  return raw.startsWith('"') ? parseString(raw) : raw;
}

export function isNumber(raw: string): boolean {
  return /^-?\d/.test(raw);
}

/** The position after the JSON value that starts at `at`. */
function valueEnd(line: string, at: number): number {
  const first = line[at];
  if (first === '"') return stringEnd(line, at);
  if (first === "{" || first === "[") return nestedEnd(line, at);
  let end = at;
  while (end < line.length && !",}] \t\r".includes(line[end] ?? "")) end++;
  if (end === at) throw malformed(line);
  return end;
}

function stringEnd(line: string, at: number): number {
  for (let i = at + 1; i < line.length; i++) {
    if (line[i] === "\\") i++;
    else if (line[i] === '"') return i + 1;
  }
  throw malformed(line);
}

function nestedEnd(line: string, at: number): number {
  let depth = 0;
  for (let i = at; i < line.length; i++) {
    const char = line[i];
    if (char === '"') i = stringEnd(line, i) - 1;
    else if (char === "{" || char === "[") depth++;
    else if ((char === "}" || char === "]") && --depth === 0) return i + 1;
  }
  throw malformed(line);
}

function parseString(raw: string): string {
  try {
    return String(JSON.parse(raw));
  } catch {
    throw malformed(raw);
  }
}

function expect(line: string, at: number, char: string): number {
  if (line[at] !== char) throw malformed(line);
  return at + 1;
}

function skipSpace(line: string, at: number): number {
  let i = at;
  while (line[i] === " " || line[i] === "\t" || line[i] === "\r") i++;
  return i;
}

function malformed(line: string): CliError {
  return new CliError(`the server sent a row that is no JSON object: ${JSON.stringify(line.slice(0, 80))}`);
}

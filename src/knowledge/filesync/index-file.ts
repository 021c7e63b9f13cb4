import { cutWithin } from "../../core/cut-text.ts";
import { FILE_SYNC_LIMITS } from "./limits.ts";

/**
 * The index of a coding agent's memory, `MEMORY.md`: a line for each fact, and the only file that agents load by
 * themselves. Ours are between two marks; what is outside of them belongs to others and stays as it is.
 */
export const INDEX_NAME = "MEMORY.md";

const BEGIN = "<!-- engine: begin (written by `engine sync`; changes between these marks are lost) -->";
const END = "<!-- engine: end -->";
const BLOCK = /^<!-- engine: begin\b[^\n]*\n(?:[^\n]*\n)*?<!-- engine: end -->(?:\n|$)/m;

export type IndexEntry = { file: string; name: string; hook: string };

/** The text of the index with a line for each entry that no line outside of our block links to, the first ones first. */
export function withEntries(before: string, entries: readonly IndexEntry[]): string {
  const found = BLOCK.exec(before);
  const [head, tail] =
    found === null ? [before, ""] : [before.slice(0, found.index), before.slice(found.index + found[0].length)];
  const theirs = `${head}${tail}`;
  const missing = entries.filter(({ file }) => !theirs.includes(`](${file})`));
  const room = FILE_SYNC_LIMITS.indexLines - 1 - linesIn(theirs) - 2;
  const lines = missing.slice(0, Math.max(0, room)).map(lineOf);
  if (lines.length === 0) return found === null ? before : theirs;
  const block = `${[BEGIN, ...lines, END].join("\n")}\n`;
  if (found !== null) return `${head}${block}${tail}`;
  const gap = head === "" || head.endsWith("\n\n") ? "" : head.endsWith("\n") ? "\n" : "\n\n";
  return `${head}${gap}${block}`;
}

function linesIn(text: string): number {
  return text === "" ? 0 : text.trimEnd().split("\n").length;
}

/** `- [Title](file.md) — hook`, in less than 200 characters. */
function lineOf({ file, name, hook }: IndexEntry): string {
  const title = plain(name).slice(0, 80).toWellFormed();
  const start = `- [${title}](${file})`;
  const said = plain(hook);
  if (said === "") return start;
  const room = FILE_SYNC_LIMITS.indexLineChars - 1 - start.length - 3;
  if (room < 10) return start;
  return `${start} — ${cutWithin(said, room)}`;
}

/** On one line, and neither a mark of ours nor the end of a link. */
function plain(text: string): string {
  return text
    .replaceAll(/[\p{Cc}[\]<>]+/gu, " ")
    .replaceAll(/\s+/gu, " ")
    .trim();
}

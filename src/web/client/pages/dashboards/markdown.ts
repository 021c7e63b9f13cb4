/**
 * Markdown as a tree of nodes: headings, paragraphs, lists, quotes, code, bold, italics and links. There is no HTML in it
 * and nothing is loaded: a tag is text, and an image is a link to it. Links lead to http(s) and mailto only.
 */
export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "emphasis"; parts: readonly Inline[] }
  | { kind: "link"; href: string; parts: readonly Inline[] }
  | { kind: "break" };

export type Block =
  | { kind: "heading"; level: number; parts: readonly Inline[] }
  | { kind: "paragraph"; parts: readonly Inline[] }
  | { kind: "code"; text: string }
  | { kind: "list"; isOrdered: boolean; start: number; items: readonly (readonly Block[])[] }
  | { kind: "quote"; blocks: readonly Block[] }
  | { kind: "rule" };

/** Deeper nesting is text: a document with a thousand `>` in a row is nobody's. */
const MOST_DEPTH = 6;

export function markdownBlocks(text: string): Block[] {
  return blocksOf(text.replaceAll(/\r\n?/g, "\n").split("\n"), 0);
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t](.*))?$/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])([ \t]+|$)/;

function blocksOf(lines: readonly string[], depth: number): Block[] {
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at++;
      continue;
    }
    const [block, length] = blockAt(lines, at, depth);
    blocks.push(block);
    at += length;
  }
  return blocks;
}

/** The block that begins at a line, and how many lines it has: at least one. */
function blockAt(lines: readonly string[], at: number, depth: number): [Block, number] {
  const line = lines[at] ?? "";
  const fence = FENCE.exec(line)?.[1];
  if (fence !== undefined) return fencedAt(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading !== null) {
    return [{ kind: "heading", level: heading[1]?.length ?? 1, parts: inlines(withoutMarks(heading[2] ?? "")) }, 1];
  }
  if (RULE.test(line)) return [{ kind: "rule" }, 1];
  if (depth < MOST_DEPTH) {
    if (QUOTE.test(line)) {
      const length = countWhile(lines, at, (one) => QUOTE.test(one));
      const inner = lines.slice(at, at + length).map((one) => one.replace(QUOTE, ""));
      return [{ kind: "quote", blocks: blocksOf(inner, depth + 1) }, length];
    }
    if (ITEM.test(line)) return listAt(lines, at, depth);
  }
  // The first line is a part of it whatever it is.
  const length = 1 + countWhile(lines, at + 1, (one) => one.trim() !== "" && !beginsBlock(one));
  return [{ kind: "paragraph", parts: inlines(lines.slice(at, at + length).join("\n")) }, length];
}

/** `# Title #` ends with marks that are no part of it. Not by a pattern: that would take its time on many of them. */
function withoutMarks(text: string): string {
  const title = text.trim();
  let end = title.length;
  while (title.charAt(end - 1) === "#") end--;
  return end === 0 || /[ \t]/.test(title.charAt(end - 1)) ? title.slice(0, end).trim() : title;
}

function beginsBlock(line: string): boolean {
  return [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line));
}

function countWhile(lines: readonly string[], from: number, isPart: (line: string) => boolean): number {
  let count = 0;
  for (let at = from; at < lines.length && isPart(lines[at] ?? ""); at++) count++;
  return count;
}

/** A fence that nothing closes goes on to the end. */
function fencedAt(lines: readonly string[], at: number, fence: string): [Block, number] {
  const isEnd = (line: string) => line.trim().startsWith(fence) && line.trim().replaceAll(fence.charAt(0), "") === "";
  const length = countWhile(lines, at + 1, (line) => !isEnd(line));
  return [{ kind: "code", text: lines.slice(at + 1, at + 1 + length).join("\n") }, length + 2];
}

function listAt(lines: readonly string[], at: number, depth: number): [Block, number] {
  const marker = ITEM.exec(lines[at] ?? "")?.[2] ?? "-";
  const isOrdered = /\d/.test(marker);
  const items: Block[][] = [];
  let next = at;
  for (;;) {
    const found = ITEM.exec(lines[next] ?? "");
    if (found === null || /\d/.test(found[2] ?? "") !== isOrdered) break;
    const [all] = found;
    const indent = Math.min(all.length, (found[1]?.length ?? 0) + (found[2]?.length ?? 0) + 4);
    const first = (lines[next] ?? "").slice(all.length);
    const isInside = (line: string) => line.startsWith(" ".repeat(Math.min(indent, 2))) || line.trim() === "";
    const length = countWhile(lines, next + 1, isInside);
    const rest = lines.slice(next + 1, next + 1 + length).map((line) => dedented(line, indent));
    items.push(blocksOf([first, ...rest], depth + 1));
    next += 1 + length;
  }
  return [{ kind: "list", isOrdered, start: Number.parseInt(marker, 10) || 1, items }, next - at];
}

function dedented(line: string, indent: number): string {
  const spaces = /^ */.exec(line)?.[0].length ?? 0;
  return line.slice(Math.min(spaces, indent));
}

/** Where a text was found last, from where on: a thousand openings before one end search for it once. */
type Found = Map<string, { from: number; at: number }>;

export function inlines(text: string): Inline[] {
  return inlinesOf(text, 0);
}

function inlinesOf(text: string, depth: number): Inline[] {
  const parts: Inline[] = [];
  const found: Found = new Map();
  let plain = "";
  const flush = () => {
    if (plain !== "") parts.push({ kind: "text", text: plain });
    plain = "";
  };
  let at = 0;
  while (at < text.length) {
    const begun = depth < MOST_DEPTH ? inlineAt(text, at, depth, found) : undefined;
    if (begun === undefined) {
      const isEscape = text.charAt(at) === "\\" && /^[!-/:-@[-`{-~]$/.test(text.charAt(at + 1));
      plain += isEscape ? text.charAt(at + 1) : text.charAt(at) === "\n" ? " " : text.charAt(at);
      at += isEscape ? 2 : 1;
      continue;
    }
    const [part, length] = begun;
    flush();
    parts.push(part);
    at += length;
  }
  flush();
  return parts;
}

function inlineAt(text: string, at: number, depth: number, found: Found): [Inline, number] | undefined {
  const char = text.charAt(at);
  if (char === "`") return codeAt(text, at, found);
  if (char === "*" || char === "_") return emphasisAt(text, at, depth, found);
  if (char === "[") return linkAt(text, at, at, depth, found);
  if (char === "!" && text.charAt(at + 1) === "[") return linkAt(text, at, at + 1, depth, found);
  if (char === "<") return addressAt(text, at);
  if (char === " " && text.startsWith("  \n", at)) return [{ kind: "break" }, 3];
  return undefined;
}

function indexAfter(text: string, wanted: string, from: number, found: Found): number {
  const last = found.get(wanted);
  if (last !== undefined && last.from <= from && (last.at === -1 || last.at >= from)) return last.at;
  const at = text.indexOf(wanted, from);
  found.set(wanted, { from, at });
  return at;
}

function codeAt(text: string, at: number, found: Found): [Inline, number] | undefined {
  const ticks = /`+/y;
  ticks.lastIndex = at;
  const fence = ticks.exec(text)?.[0] ?? "`";
  const end = indexAfter(text, fence, at + fence.length, found);
  if (end === -1) return [{ kind: "text", text: fence }, fence.length];
  const inner = text.slice(at + fence.length, end).replaceAll("\n", " ");
  return [
    {
      kind: "code",
      text: inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "" ? inner.slice(1, -1) : inner,
    },
    end + fence.length - at,
  ];
}

const MOST_SKIPPED = 50;

function emphasisAt(text: string, at: number, depth: number, found: Found): [Inline, number] | undefined {
  const char = text.charAt(at);
  const marker = text.charAt(at + 1) === char ? char + char : char;
  const from = at + marker.length;
  // `snake_case` and `2 * 3` have none.
  const isInWord = char === "_" && /[\p{L}\p{N}]/u.test(text.charAt(at - 1));
  if (isInWord || /^\s?$/.test(text.charAt(from))) return undefined;
  let end = indexAfter(text, marker, from, found);
  // `**` is not the end of `*`. After some of them there is none: a text of thousands would be read to its end for each.
  for (let skipped = 0; marker.length === 1 && end !== -1 && text.charAt(end + 1) === char; skipped++) {
    if (skipped === MOST_SKIPPED) return undefined;
    end = indexAfter(text, marker, end + 2, found);
  }
  if (end <= from || /\s/.test(text.charAt(end - 1))) return undefined;
  if (char === "_" && /[\p{L}\p{N}]/u.test(text.charAt(end + marker.length))) return undefined;
  const kind = marker.length === 2 ? "strong" : "emphasis";
  return [{ kind, parts: inlinesOf(text.slice(from, end), depth + 1) }, end + marker.length - at];
}

/** `[text](address)`. An address that may not be reached leaves the text; so does an image, which is never loaded. */
function linkAt(text: string, at: number, bracket: number, depth: number, found: Found): [Inline, number] | undefined {
  const middle = indexAfter(text, "](", bracket, found);
  if (middle === -1) return undefined;
  const end = indexAfter(text, ")", middle, found);
  const inner = text.slice(bracket + 1, middle);
  if (end === -1 || inner.includes("[") || inner.includes("\n\n")) return undefined;
  const href = safeAddress(
    text
      .slice(middle + 2, end)
      .trim()
      .split(/\s/, 1)[0] ?? "",
  );
  const parts = inlinesOf(inner === "" ? "image" : inner, depth + 1);
  const length = end + 1 - at;
  return href === undefined
    ? [{ kind: "text", text: plainText(parts) }, length]
    : [{ kind: "link", href, parts }, length];
}

function plainText(parts: readonly Inline[]): string {
  return parts.map((part) => ("text" in part ? part.text : "parts" in part ? plainText(part.parts) : " ")).join("");
}

const ADDRESS = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/iy;

function addressAt(text: string, at: number): [Inline, number] | undefined {
  ADDRESS.lastIndex = at;
  const [all, address = ""] = ADDRESS.exec(text) ?? [];
  const href = safeAddress(address);
  if (all === undefined || href === undefined) return undefined;
  return [{ kind: "link", href, parts: [{ kind: "text", text: address }] }, all.length];
}

const MOST_ADDRESS_CHARS = 2_000;

/** An absolute http(s) or mailto address, as the browser's own parser understands it; undefined for all others. */
export function safeAddress(text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MOST_ADDRESS_CHARS || !/^(?:https?:\/\/|mailto:)/i.test(trimmed)) return undefined;
  try {
    const { protocol, href } = new URL(trimmed);
    return protocol === "http:" || protocol === "https:" || protocol === "mailto:" ? href : undefined;
  } catch {
    return undefined;
  }
}

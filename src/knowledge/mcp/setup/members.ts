/**
 * Where the members of a JSON object stand in its text, so that one can be set and everything around it stays byte for
 * byte: order, blanks, numbers that a double cannot hold. The text has been parsed: it is JSON.
 */
export type Member = { key: string; keyStart: number; valueStart: number; valueEnd: number };

/** The members of the object that begins at `at`, and where it ends (after its brace). */
export function membersAt(text: string, at: number): { members: Member[]; end: number } {
  const members: Member[] = [];
  let i = skipBlanks(text, at + 1);
  while (text[i] !== "}") {
    const keyEnd = stringEnd(text, i);
    const valueStart = skipBlanks(text, skipBlanks(text, keyEnd) + 1);
    const valueEnd = endOfValue(text, valueStart);
    members.push({ key: JSON.parse(text.slice(i, keyEnd)) as string, keyStart: i, valueStart, valueEnd });
    i = skipBlanks(text, valueEnd);
    if (text[i] === ",") i = skipBlanks(text, i + 1);
  }
  return { members, end: i + 1 };
}

/** The member that counts: of equal keys the last. */
export function memberOf(members: readonly Member[], key: string): Member | undefined {
  return members.findLast((member) => member.key === key);
}

/** The text with a member in the object that begins at `at`: in place of the one with that key, or after the last. */
export function withMember(text: string, at: number, key: string, value: unknown): string {
  const { members, end } = membersAt(text, at);
  const first = members[0];
  const outer = indentOf(text, at);
  const inner = first === undefined ? `${outer}  ` : (ownIndent(text, first.keyStart) ?? `${outer}  `);
  const step = inner.startsWith(outer) && inner !== outer ? inner.slice(outer.length) : "  ";
  const written = JSON.stringify(value, undefined, step).replaceAll("\n", `\n${inner}`);
  const there = memberOf(members, key);
  if (there !== undefined) return text.slice(0, there.valueStart) + written + text.slice(there.valueEnd);
  const member = `\n${inner}${JSON.stringify(key)}: ${written}`;
  const last = members.at(-1);
  if (last !== undefined) return `${text.slice(0, last.valueEnd)},${member}${text.slice(last.valueEnd)}`;
  return `${text.slice(0, at + 1)}${member}\n${outer}${text.slice(end - 1)}`;
}

export function skipBlanks(text: string, at: number): number {
  let i = at;
  while (text[i] === " " || text[i] === "\t" || text[i] === "\n" || text[i] === "\r") i++;
  return i;
}

/** The blanks before the first character of the line; none where the line has more than blanks before it. */
function ownIndent(text: string, at: number): string | undefined {
  const before = text.slice(text.lastIndexOf("\n", at - 1) + 1, at);
  return text.includes("\n") && /^[ \t]*$/.test(before) ? before : undefined;
}

/** How far the line of a character is indented. */
function indentOf(text: string, at: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", at - 1) + 1, at))?.[0] ?? "";
}

function stringEnd(text: string, at: number): number {
  let i = at + 1;
  while (text[i] !== '"') i += text[i] === "\\" ? 2 : 1;
  return i + 1;
}

function endOfValue(text: string, at: number): number {
  const first = text[at];
  if (first === '"') return stringEnd(text, at);
  let i = at;
  if (first !== "{" && first !== "[") {
    while (i < text.length && !/[\s,}\]]/.test(text[i] ?? "")) i++;
    return i;
  }
  for (let depth = 0; i < text.length; i++) {
    const char = text[i];
    if (char === '"') i = stringEnd(text, i) - 1;
    else if (char === "{" || char === "[") depth++;
    else if ((char === "}" || char === "]") && --depth === 0) break;
  }
  return i + 1;
}

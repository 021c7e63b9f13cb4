/** A part of a text that runs alone, by its place. */
export type TextPart = { from: number; text: string };

/** The queries of a text that are parted by blank lines, as the query page runs them. */
export function partsOf(text: string, isScript: boolean): TextPart[] {
  if (!isScript) return [{ from: 0, text }];
  const parts: TextPart[] = [];
  let from = 0;
  for (const to of endsOfQueries(text)) {
    parts.push({ from, text: text.slice(from, to) });
    from = to;
  }
  parts.push({ from, text: text.slice(from) });
  return parts;
}

/** The places behind the blank lines of a text: KQL has no other mark between two queries, as in its own editors. */
export function endsOfQueries(text: string): number[] {
  return [...text.matchAll(/\n[ \t]*\n/g)].map(({ index, 0: blank }) => index + blank.length);
}

/** The part that the place is in or behind. */
export function partAt(parts: readonly TextPart[], at: number): TextPart {
  return parts.findLast(({ from }) => from <= at) ?? { from: 0, text: "" };
}

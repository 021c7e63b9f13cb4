/** Text that was put into the user's, so that the binder knows what it cannot find out. `at` counts in the user's text. */
export type Insertion = { at: number; text: string; usesKeys: boolean };

/** The query must be bound again with this. */
export class InsertionNeeded extends Error {
  readonly insertion: Insertion;

  constructor(insertion: Insertion) {
    super("the text is bound again with an insertion");
    this.insertion = insertion;
  }
}

/** The text with all insertions. */
export function withInsertions(text: string, insertions: readonly Insertion[]): string {
  let [made, from] = ["", 0];
  for (const { at, text: own } of inOrder(insertions)) {
    made += text.slice(from, at) + own;
    from = at;
  }
  return made + text.slice(from);
}

/** A place of the text with insertions, in the text without them. */
export function placeWithout(insertions: readonly Insertion[], place: number): number {
  let shift = 0;
  for (const { at, text } of inOrder(insertions)) {
    const start = at + shift;
    if (place <= start) break;
    shift += Math.min(text.length, place - start);
  }
  return place - shift;
}

function inOrder(insertions: readonly Insertion[]): Insertion[] {
  return insertions.toSorted((a, b) => a.at - b.at);
}

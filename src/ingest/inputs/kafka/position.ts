/**
 * The position of a partition, as the catalog keeps it (`catalog/input-positions.ts`): the offset of the next message to
 * be stored, as `1200`; or, between the commit of a batch's rows and that of its dead letters, with the offsets of those
 * that are still to come, as `1200 letters 1101,1150-1152`.
 */
export type KafkaPosition = {
  next: number;
  /** Offsets before `next` whose messages are dead letters and not stored yet, in order. */
  pending: readonly OffsetRange[];
};

/** Both inclusive. */
export type OffsetRange = { first: number; last: number };

const FORM = /^(\d{1,16})(?: letters (\d{1,16}(?:-\d{1,16})?(?:,\d{1,16}(?:-\d{1,16})?)*))?$/;

export function formatPosition({ next, pending }: KafkaPosition): string {
  if (pending.length === 0) return String(next);
  const ranges = pending.map(({ first, last }) => (first === last ? String(first) : `${first}-${last}`));
  return `${next} letters ${ranges.join(",")}`;
}

/** Undefined for a text that is no position of a partition. */
export function parsePosition(text: string): KafkaPosition | undefined {
  const [, nextText, rangesText] = FORM.exec(text) ?? [];
  if (nextText === undefined) return undefined;
  const next = Number(nextText);
  const pending = (rangesText ?? "").split(",").flatMap((range): OffsetRange[] => {
    if (range === "") return [];
    const [first = "", last = first] = range.split("-");
    return [{ first: Number(first), last: Number(last) }];
  });
  let before = -1;
  for (const { first, last } of pending) {
    if (first <= before || last < first || last >= next) return undefined;
    before = last;
  }
  return Number.isSafeInteger(next) ? { next, pending } : undefined;
}

/** Offset ranges in order, with those joined that follow one another. */
export function joinRanges(ranges: readonly OffsetRange[]): OffsetRange[] {
  const joined: OffsetRange[] = [];
  for (const { first, last } of ranges.toSorted((a, b) => a.first - b.first)) {
    const before = joined.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else joined.push({ first, last });
  }
  return joined;
}

export function covers(ranges: readonly OffsetRange[], offset: number): boolean {
  return ranges.some(({ first, last }) => first <= offset && offset <= last);
}

/** What of the ranges lies at or after the offset. */
export function rangesFrom(ranges: readonly OffsetRange[], offset: number): OffsetRange[] {
  return ranges.flatMap(({ first, last }) => (last < offset ? [] : [{ first: Math.max(first, offset), last }]));
}

/** Longest name that is compared; anything longer is no typing mistake of a known name. */
const MAX_CHARS = 256;

/**
 * The known name that the caller most likely meant, or undefined when none is close: at most a third of its
 * characters (and at least one) may differ, letter case not counted. The first of equally close names wins.
 */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  if (name.length > MAX_CHARS) return undefined;
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1;
  for (const candidate of known) {
    const distance = boundedDistance(wanted, candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/**
 * Edit distance with adjacent transpositions (optimal string alignment), or `bound` when it is not below it.
 * Two rows of the usual table, and the one before them for the transpositions.
 */
function boundedDistance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) >= bound) return bound;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let smallest = i;
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) cost = Math.min(cost, at(beforeLast, j - 2) + 1);
      row.push(cost);
      smallest = Math.min(smallest, cost);
    }
    if (smallest >= bound) return bound;
    beforeLast = last;
    last = row;
  }
  return Math.min(at(last, b.length), bound);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}

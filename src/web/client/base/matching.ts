/**
 * How well what was typed finds a title: its letters in their order, better at the start of words and side by side. Undefined
 * where it does not.
 */
export function scoreOf(typed: string, title: string): number | undefined {
  const [wanted, given] = [typed.toLowerCase().replaceAll(/\s+/g, ""), title.toLowerCase()];
  let [score, at, last] = [0, 0, -2];
  for (const letter of wanted) {
    const found = given.indexOf(letter, at);
    if (found === -1) return undefined;
    const isStart = found === 0 || /[\s:./_-]/.test(given[found - 1] ?? "");
    score += found === last + 1 ? 3 : isStart ? 2 : 0;
    last = found;
    at = found + 1;
  }
  // Of equals, the shorter.
  return score - given.length / 100;
}

/** Those that are found, the best first; all of them, in their order, where nothing was typed. */
export function bestMatches<T extends { title: string }>(typed: string, items: readonly T[]): T[] {
  if (typed.trim() === "") return [...items];
  return items
    .flatMap((item) => {
      const score = scoreOf(typed, item.title);
      return score === undefined ? [] : [{ item, score }];
    })
    .toSorted((a, b) => b.score - a.score)
    .map(({ item }) => item);
}

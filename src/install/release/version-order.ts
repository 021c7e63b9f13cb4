/** Semantic Versioning 2.0, without build metadata, by which versions are not ordered. */
export const VERSION_TEXT = /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/;

/** The order of versions as Semantic Versioning 2.0 has it (§11); both must be versions of `release.json`. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)];
  for (const [i, number] of left.numbers.entries()) {
    const difference = number - (right.numbers[i] ?? 0);
    if (difference !== 0) return difference;
  }
  // A version with a mark is earlier than the same without.
  if (left.marks.length === 0 || right.marks.length === 0) return right.marks.length - left.marks.length;
  for (const [i, mark] of left.marks.entries()) {
    const other = right.marks[i];
    if (other === undefined) return 1;
    const difference = compareMarks(mark, other);
    if (difference !== 0) return difference;
  }
  return left.marks.length - right.marks.length;
}

function partsOf(version: string): { numbers: number[]; marks: string[] } {
  const dash = version.indexOf("-");
  const core = dash === -1 ? version : version.slice(0, dash);
  return { numbers: core.split(".").map(Number), marks: dash === -1 ? [] : version.slice(dash + 1).split(".") };
}

const NUMBER = /^\d+$/;

/** Numbers by value and before words, words by their characters. */
function compareMarks(a: string, b: string): number {
  const [isNumber, isOtherNumber] = [NUMBER.test(a), NUMBER.test(b)];
  if (isNumber && isOtherNumber) return Number(a) - Number(b);
  if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
  return a < b ? -1 : Number(a > b);
}

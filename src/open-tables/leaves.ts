import type { ExtentRecord } from "../catalog/catalog.ts";
import { INT64_MIN } from "../catalog/int64.ts";

/** What of an extent says in which manifest it is. */
export type Placed = Pick<ExtentRecord, "id" | "minAtNs">;

/** The files of one manifest, in the order of their first times. */
export type Leaf<E extends Placed> = readonly E[];

/**
 * Divides the files of a table among manifests, of at most `most` files each.
 *
 * Halves of all time, halves of those, and so on down to where there are few enough files: so which manifest a file is in
 * depends on the files near it in time and on nothing else, neither on how the table came to be as it is nor on who
 * asks. A merge replaces files of one day, so it changes one manifest, or two where that one had to be halved. Files that
 * begin at one time are halved by their ids.
 */
export function leavesOf<E extends Placed>(extents: readonly E[], most: number): Leaf<E>[] {
  const sorted = extents.map((extent) => ({ extent, key: keyOf(extent) })).sort((a, b) => (a.key < b.key ? -1 : 1));
  const leaves: E[][] = [];
  divide(0, sorted.length, KEY_BITS - 1n);
  return leaves;

  /** Those from `start` to before `end` have the same bits above `bit`. */
  function divide(start: number, end: number, bit: bigint): void {
    if (start === end) return;
    if (end - start <= most || bit < 0n) {
      leaves.push(sorted.slice(start, end).map(({ extent }) => extent));
      return;
    }
    const middle = firstWith(bit, start, end);
    divide(start, middle, bit - 1n);
    divide(middle, end, bit - 1n);
  }

  /** The first of them that has the bit; they are sorted, so all behind it have it. */
  function firstWith(bit: bigint, start: number, end: number): number {
    let [low, high] = [start, end];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((((sorted[middle]?.key ?? 0n) >> bit) & 1n) === 1n) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const ID_BITS = 128n;
const KEY_BITS = 64n + ID_BITS;

function keyOf({ id, minAtNs }: Placed): bigint {
  return ((minAtNs - INT64_MIN) << ID_BITS) | BigInt(`0x${id.replaceAll("-", "")}`);
}

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { ID_COUNT, RuntimeError } from "./runtime.ts";

/**
 * Ranges of the host's ids for machines, `ID_COUNT` ids each, one after the other from `first` on. Each machine has one of
 * its own until it is removed: what the kernel counts by user (open epoll watches, pages of pipes, descriptors that are on
 * their way) is its own then, too, and files of one machine belong to nobody in another.
 *
 * The first range is that of machines that were made by versions of this program in which all had the same. Where there
 * is no other, all share it.
 */
export class IdRanges {
  readonly #first: number;
  readonly #count: number;
  readonly #taken = new Set<number>();
  #next: number;

  /** `home`: nodes on one computer that were given the same ids begin at different ranges, and hardly ever meet. */
  constructor({ first, count, home }: { first: number; count: number; home: string }) {
    this.#first = first;
    this.#count = count;
    this.#next = createHash("sha256").update(home).digest().readUInt32BE(0);
  }

  /** That of machines that have none of their own. */
  get shared(): number {
    return this.#first;
  }

  /** The first id of a range that no machine has. Throws `RuntimeError` `unable` when there is none. */
  take(): number {
    const own = this.#count - 1;
    if (own < 1) return this.#first;
    for (let tried = 0; tried < own; tried++) {
      const first = this.#first + (1 + (this.#next++ % own)) * ID_COUNT;
      if (this.#taken.has(first)) continue;
      this.#taken.add(first);
      return first;
    }
    throw new RuntimeError("unable", `all ${own} ranges of ids are taken by sandboxes: see ENGINE_SANDBOX_ID_RANGES`);
  }

  /** A machine that was made earlier has it. */
  keep(first: number): void {
    this.#taken.add(first);
  }

  /** Nothing is left of the machine that had it. */
  release(first: number): void {
    this.#taken.delete(first);
  }
}

/** One range for all from this id on, or many: those that no Linux distribution gives out are free up to 2^31. */
const UNUSED = { first: 0x7000_0000, end: 0x8000_0000 } as const;

/** How many ranges a node has that was given this first id, and nothing else. */
export function defaultRanges(first: number): number {
  return first === UNUSED.first ? (UNUSED.end - UNUSED.first) / ID_COUNT : 1;
}

/**
 * Throws `RuntimeError` `unable` unless this process may give out all these ids: in a container it has only some of the
 * host's.
 */
export async function checkRanges({ first, count }: { first: number; count: number }): Promise<void> {
  const end = first + count * ID_COUNT;
  for (const map of await Promise.all(["uid_map", "gid_map"].map((name) => readFile(`/proc/self/${name}`, "utf8")))) {
    if (isMapped(map, first, end)) continue;
    throw new RuntimeError(
      "unable",
      `the ids ${first} to ${end - 1} are not all there for sandboxes: see ENGINE_SANDBOX_FIRST_HOST_ID and ENGINE_SANDBOX_ID_RANGES`,
    );
  }
}

/** Whether all ids from `first` to `end`, exclusive, are in a map: lines of first id, first id outside, and count. */
export function isMapped(map: string, first: number, end: number): boolean {
  const extents = map
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([inside = 0, , count = 0]) => ({ first: inside, end: inside + count }))
    .toSorted((a, b) => a.first - b.first);
  let at = first;
  for (const extent of extents) if (extent.first <= at && extent.end > at) at = extent.end;
  return at >= end;
}

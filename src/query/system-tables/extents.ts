import type { Catalog, CrowdedDay, ExtentRecord } from "../../catalog/catalog.ts";

/**
 * The extents of a table for `system.extents`. Of a table with very many the catalog is asked for one range of time
 * after the other, each with about `PAGE_EXTENTS`, so that those of one range are in memory at a time: a million of them
 * take gigabytes. Where a range ends is guessed from how many extents the days have; a wrong guess costs memory, and
 * never an extent.
 *
 * Extents that are wide lie in many ranges, and would be read for each of them. So when a range turns out to have far
 * more than was guessed, all that is left is read at once.
 */
export type ExtentReader = Pick<Catalog, "crowdedDays" | "extents" | "tableStats">;

const PAGE_EXTENTS = 10_000;
/** Of a page, what is taken for a wrong guess. */
const OVERFULL = 4;
/** Days of all tables; the rest are those with the fewest extents. */
const MAX_DAYS = 10_000;
const DAY_MS = 86_400_000;
const NS_PER_MS = 1_000_000n;

/**
 * Reads extents with the statistics of few columns or none. Of one reader the days are asked for once, and only if a table has very many
 * extents.
 */
export class ExtentPages {
  readonly #catalog: ExtentReader;
  readonly #pageExtents: number;
  #days: Promise<CrowdedDay[]> | undefined;

  constructor(catalog: ExtentReader, pageExtents = PAGE_EXTENTS) {
    this.#catalog = catalog;
    this.#pageExtents = pageExtents;
  }

  /**
   * Those of a table that are alive at the snapshot, each once, with the statistics of the columns that `statsOf` names.
   * Rejects as `Catalog.extents` does.
   */
  async *of(tableId: number, atSnapshot: number, statsOf: readonly string[] = []): AsyncGenerator<ExtentRecord> {
    const starts = await this.#startsOf(tableId);
    for (let i = 0; i <= starts.length; i++) {
      const [minNs, nextNs] = [starts[i - 1], starts[i]];
      const range = {
        ...(minNs === undefined ? {} : { minNs }),
        ...(nextNs === undefined ? {} : { maxNs: nextNs - 1n }),
      };
      const overlapping = await this.#catalog.extents(tableId, atSnapshot, range, statsOf);
      // An extent belongs to the range in which it begins.
      for (const extent of overlapping) if (minNs === undefined || extent.minAtNs >= minNs) yield extent;
      if (overlapping.length > OVERFULL * this.#pageExtents) starts.splice(i + 1);
    }
  }

  /** Where ranges begin, ascending; the first one has no beginning, and the last one no end. */
  async #startsOf(tableId: number): Promise<bigint[]> {
    const { extents } = await this.#catalog.tableStats(tableId);
    if (extents <= this.#pageExtents) return [];
    this.#days ??= this.#catalog.crowdedDays({ belowBytes: Number.MAX_SAFE_INTEGER, minExtents: 1, limit: MAX_DAYS });
    const days = (await this.#days).filter((day) => day.tableId === tableId);
    return startsIn(
      days.sort((a, b) => a.dayMs - b.dayMs),
      this.#pageExtents,
    );
  }
}

function startsIn(days: readonly CrowdedDay[], pageExtents: number): bigint[] {
  const starts: bigint[] = [];
  let inRange = 0;
  for (const { dayMs, extents } of days) {
    inRange += extents;
    if (inRange <= pageExtents) continue;
    const parts = Math.ceil(extents / pageExtents);
    for (let part = 0; part < parts; part++) {
      starts.push(BigInt(dayMs + Math.floor((DAY_MS * part) / parts)) * NS_PER_MS);
    }
    inRange = extents / parts;
  }
  return starts;
}

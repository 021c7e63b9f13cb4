import type { Catalog, ColumnProbe, ExtentTotals, ScanFilter } from "../../catalog/catalog.ts";
import type { StatsTest } from "../../catalog/stats-test.ts";
import { probeNeedles, probeValues } from "../../format/filter/probes.ts";

/**
 * The last rule of pruning: of the extents that time and statistics leave over, those go whose filters say that they
 * cannot hold a row that is looked for. Only equality with text, lists of it, and needles in text can be asked; whatever
 * else a test says passes. An extent without filters stays.
 */
export type FilterPruned<E> = { extents: E[]; prunedByFilters: ExtentTotals };

/** `filters` are the readers of the table: an extent is kept when any of them may need it. */
export async function pruneByFilters<E extends { id: string; sizeBytes: number }>(
  catalog: Catalog,
  tableId: number,
  candidates: readonly E[],
  filters: readonly ScanFilter[],
): Promise<FilterPruned<E>> {
  const search = new FilterSearch(catalog, tableId);
  const tests = filters.map(({ tests: of }): StatsTest => ({ kind: "all", of }));
  const ids = candidates.map(({ id }) => id);
  const without = await search.without({ kind: "any", of: tests }, ids);
  const extents = candidates.filter(({ id }) => !without.has(id));
  const prunedByFilters = { extents: candidates.length - extents.length, sizeBytes: 0 };
  for (const { id, sizeBytes } of candidates) if (without.has(id)) prunedByFilters.sizeBytes += sizeBytes;
  return { extents, prunedByFilters };
}

/** Of one query; it costs a look-up for every candidate. */
const MAX_PROBES = 16;
const NONE: ReadonlySet<string> = new Set();

class FilterSearch {
  readonly #catalog: Catalog;
  readonly #tableId: number;
  #probesLeft = MAX_PROBES;

  constructor(catalog: Catalog, tableId: number) {
    this.#catalog = catalog;
    this.#tableId = tableId;
  }

  /** Which of the extents have no row that passes. */
  without(test: StatsTest, ids: readonly string[]): Promise<ReadonlySet<string>> {
    if (test.kind === "all") return this.#withoutAll(test.of, ids);
    if (test.kind === "any") return this.#withoutAny(test.of, ids);
    return this.#withoutOne(test, ids);
  }

  async #withoutAll(tests: readonly StatsTest[], ids: readonly string[]): Promise<ReadonlySet<string>> {
    const without = new Set<string>();
    for (const test of tests) {
      const left = ids.filter((id) => !without.has(id));
      for (const id of await this.without(test, left)) without.add(id);
    }
    return without;
  }

  async #withoutAny(tests: readonly StatsTest[], ids: readonly string[]): Promise<ReadonlySet<string>> {
    if (tests.length === 0 || !tests.every(isAsked)) return NONE;
    let without: ReadonlySet<string> = new Set(ids);
    for (const test of tests) without = await this.without(test, [...without]);
    return without;
  }

  async #withoutOne(test: StatsTest, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const probe = probeOf(test);
    if (probe === undefined || ids.length === 0 || this.#probesLeft === 0) return NONE;
    this.#probesLeft--;
    return new Set(await this.#catalog.extentsWithout(this.#tableId, ids, [probe]));
  }
}

/** Whether filters have any say in the test. */
function isAsked(test: StatsTest): boolean {
  if (test.kind === "all") return test.of.some(isAsked);
  if (test.kind === "any") return test.of.length > 0 && test.of.every(isAsked);
  return probeOf(test) !== undefined;
}

function probeOf(test: StatsTest): ColumnProbe | undefined {
  if (test.kind !== "within" && test.kind !== "contains") return undefined;
  const probe = test.kind === "contains" ? probeNeedles(test.needles) : probeValues(textsOf(test.ranges) ?? []);
  return probe === undefined || probe.anyOf.length === 0 ? undefined : { column: test.column, ...probe };
}

type Ranges = Extract<StatsTest, { kind: "within" }>["ranges"];

/** The texts that the value may be equal to; undefined when ranges are more than single texts. */
function textsOf(ranges: Ranges): string[] | undefined {
  const texts: string[] = [];
  for (const { min, max } of ranges) {
    if (typeof min !== "string" || min !== max) return undefined;
    texts.push(min);
  }
  return texts;
}

import type { Catalog, TableRecord } from "../../src/catalog/catalog.ts";
import { pickMerge } from "../../src/compaction/pick.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { idleBytesOf } from "../costs/memory.ts";
import { QueryClient } from "../query/query-client.ts";
import { anExtent, commit, SECOND_NS } from "../support/commits.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import type { CurveContext, Series } from "./curve.ts";

/** What the size of a catalog may tell on, for the curves of tables, extents and snapshots. */
export const CATALOG_SERIES = {
  commit: { unit: "ms", doc: "one extent and one key", promise: "flat" },
  plan: {
    unit: "ms",
    doc: "a query that reads ten extents of one table",
    promise: "flat",
    because:
      "an index in memory is gone through, 18 ns for each extent of the table; of tables and snapshots there are more " +
      "pages of the catalog to read, 1 ms for 10,000",
  },
  pick: { unit: "ms", doc: "compaction's look for what to merge", promise: "n log n" },
} as const satisfies Record<string, Series>;

/** The same of a server that has the catalog. */
export const SERVER_SERIES = {
  start: { unit: "ms", doc: "from starting a server to its listening", promise: "n log n" },
  idle: { unit: "MiB", doc: "resident memory of all its processes, idle", promise: "n log n" },
  query: { unit: "ms", doc: "over HTTP, of one table and no extent", promise: "flat" },
} as const satisfies Record<string, Series>;

/** Beyond what the catalog's own extents reach. */
const AFTER_ALL_NS = 4_000_000n * SECOND_NS;
const TOUCHED = 10;
const MIN_EXTENTS = 24;

export type Figures = Record<string, readonly number[]>;

/** Values of `CATALOG_SERIES`. The ten extents that are planned lie behind all others; each commit adds one of them. */
export async function catalogFigures(
  catalog: Catalog,
  table: TableRecord,
  { brief }: Pick<CurveContext, "brief">,
): Promise<Figures> {
  const times = brief ? 3 : 31;
  const late = Array.from({ length: TOUCHED }, (_, i) => anExtent(AFTER_ALL_NS + BigInt(i) * SECOND_NS));
  await commit(catalog, table, late);
  const plan = async () => {
    const { id: atSnapshot } = await catalog.head();
    const range = { minNs: AFTER_ALL_NS };
    const { extents } = await catalog.planScan({ tableId: table.id, atSnapshot, filters: [{ range, tests: [] }] });
    if (extents.length < TOUCHED) throw new Error(`the plan has ${extents.length} of ${TOUCHED} extents`);
  };
  const commitMs = await repeated(times, () => commit(catalog, table, [anExtent(0n)]));
  const planMs = await repeated(times, plan);
  return { commit: commitMs, plan: planMs, pick: await repeated(brief ? 1 : 5, () => look(catalog)) };
}

/** What compaction does when it looks for work: the crowded days, and which extents of the first one to merge. */
async function look(catalog: Catalog): Promise<void> {
  const days = await catalog.crowdedDays({ belowBytes: 128 * MIB, minExtents: MIN_EXTENTS, limit: 100 });
  const [day] = days;
  if (day === undefined) return;
  const { id } = await catalog.head();
  const range = { minNs: BigInt(day.dayMs) * 1_000_000n, maxNs: BigInt(day.dayMs + DAY_MS) * 1_000_000n - 1n };
  const extents = await catalog.extents(day.tableId, id, range, []);
  pickMerge(extents, { minExtents: MIN_EXTENTS, nowMs: systemClock.nowMs(), maxInputBytes: 1024 * MIB });
}

const DAY_MS = 86_400_000;

/** Values of `SERVER_SERIES`, of servers that are started with this home. */
export async function serverFigures(
  home: string,
  table: TableRecord,
  { brief, signal }: Pick<CurveContext, "brief" | "signal">,
): Promise<Figures> {
  const sql = `SELECT count(*) AS n FROM ${table.name} WHERE "at" >= make_timestamp_ns(${2n * AFTER_ALL_NS})`;
  const [start, idle]: [number[], number[]] = [[], []];
  const query: number[] = [];
  for (let round = 0; round < (brief ? 1 : 3); round++) {
    signal.throwIfAborted();
    const startedMs = systemClock.monotonicMs();
    const server = await startBenchServer({ home });
    start.push(systemClock.monotonicMs() - startedMs);
    const client = new QueryClient(server.url, { database: table.database });
    try {
      await sleep(systemClock, SETTLED_MS);
      idle.push(idleBytesOf(server.pid) / MIB);
      // The first one opens what all have need of, and code becomes fast by running: the tenth takes half of the second.
      await repeated(brief ? 1 : WARM_UP_QUERIES, () => client.run(sql));
      query.push(...(await repeated(brief ? 2 : 11, () => client.run(sql))));
    } finally {
      client.close();
      await server.stop();
    }
  }
  return { start, idle, query };
}

const SETTLED_MS = 1_000;
const WARM_UP_QUERIES = 20;

/** Milliseconds of each time. */
export async function repeated(times: number, work: (i: number) => Promise<unknown>): Promise<number[]> {
  const taken: number[] = [];
  for (let i = 0; i < times; i++) {
    const startedMs = performance.now();
    await work(i);
    taken.push(performance.now() - startedMs);
  }
  return taken;
}

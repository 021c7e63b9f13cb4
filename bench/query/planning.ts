import { join } from "node:path";
import { z } from "zod";
import { ANONYMOUS } from "../../src/auth/caller.ts";
import type { Catalog, ExtentRecord, NewExtent, TableRecord } from "../../src/catalog/catalog.ts";
import { median } from "../../src/capacity/quantile.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { systemRandom } from "../../src/core/random.ts";
import { planQuery } from "../../src/query/prune/plan.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { startBenchServer } from "../support/server.ts";
import { queryData, TABLES } from "./data.ts";
import { QueryClient } from "./query-client.ts";
import { FRESH_ROWS, seedHome, withStorage } from "./seed.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "query/planning",
  question: "What does planning cost on a table of very many extents, of which a query reads the ten newest?",
  notMeasured:
    "Catalogs other than SQLite, and a cold one. The other extents are in the catalog alone: catalog/planning asks about " +
    "a million of them.",
  options: z.strictObject({
    extents: count.default(100_000).describe("of the table; the other table has ten"),
    extentRows: count.default(FRESH_ROWS).describe("of one of the ten"),
    times: count.default(200).describe("each query in one round"),
  }),
  measures: {
    many: { unit: "ms", better: "less", doc: "a count over ten of very many extents: median" },
    few: { unit: "ms", better: "less", doc: "the same of a table that has no others" },
    added: { unit: "ms", better: "less", doc: "the one less the other, of requests next to each other: median" },
    plan: { unit: "ms", better: "less", doc: "planning alone, of the table with very many: median" },
  },
  rounds: 5,
  open: async ({ extents, extentRows, times }, { folder }) => {
    const rows = TOUCHED * extentRows;
    const data = await queryData(join(folder, "data"), rows);
    // While a server has it open, a home cannot be opened by this process.
    const [asked, planned] = [await manyExtents("asked"), await manyExtents("planned")];
    const server = await startBenchServer({ home: asked.home });
    const client = new QueryClient(server.url);
    const sqlOf = (table: string) =>
      `SELECT count(*) AS n FROM ${table} WHERE "at" >= make_timestamp_ns(${asked.fromNs})`;
    const [many, few] = [sqlOf(MANY), sqlOf(TABLES.events.name)];
    const overHttp = async () => {
      const taken = { many: [] as number[], few: [] as number[], added: [] as number[] };
      for (let i = 0; i < times; i++) {
        const [ofMany, ofFew] = [(await client.run(many)).ms, (await client.run(few)).ms];
        taken.many.push(ofMany);
        taken.few.push(ofFew);
        taken.added.push(ofMany - ofFew);
      }
      return { many: median(taken.many), few: median(taken.few), added: median(taken.added) };
    };
    return {
      sides: [
        {
          name: "over HTTP",
          answers: async () => {
            for (const sql of [many, few]) {
              const { body } = await client.run(sql, { keep: true });
              if (body !== `{"n":${rows}}\n`) throw new Error(`${sql} answers ${body}`);
            }
          },
          round: overHttp,
          processes: () => ({ server: server.pid }),
        },
        {
          name: "in process",
          round: async () => {
            const { home, fromNs } = planned;
            return { plan: median(await withStorage(home, ({ catalog }) => planTimes(catalog, fromNs, times))) };
          },
        },
      ],
      close: async () => {
        client.close();
        await server.stop();
      },
    };

    async function manyExtents(name: string): Promise<{ home: string; fromNs: bigint }> {
      const { home } = await seedHome(join(folder, name), data, { format: "parquet", cut: { rows: extentRows } });
      return { home, fromNs: await withStorage(home, ({ catalog }) => addManyExtents(catalog, extents)) };
    }
  },
});

const TOUCHED = 10;
const MANY = "many";
/** Before anything is timed: the catalog has just been opened. */
const WARM_UPS = 50;

async function planTimes(catalog: Catalog, minNs: bigint, times: number): Promise<number[]> {
  const ms: number[] = [];
  for (let i = -WARM_UPS; i < times; i++) {
    const startedMs = systemClock.monotonicMs();
    const plan = await planQuery(
      catalog,
      { caller: ANONYMOUS, database: "default" },
      { tables: [{ name: MANY, mentions: [{ range: { minNs }, predicates: [] }] }], listings: [], system: [] },
      { clock: systemClock },
    );
    const tookMs = systemClock.monotonicMs() - startedMs;
    const found = plan.tables[0]?.extents.length;
    if (found !== TOUCHED) throw new Error(`the plan has ${found} extents, not ${TOUCHED}`);
    if (i >= 0) ms.push(tookMs);
  }
  return ms;
}

const EXTENTS_PER_COMMIT = 1_000;

/**
 * Makes a table of the extents of `events` and so many others, each before the last in time, that it has `extents` in
 * all. The others exist in the catalog alone. Returns where the real ones begin.
 */
async function addManyExtents(catalog: Catalog, extents: number): Promise<bigint> {
  const events = await catalog.table("default", TABLES.events.name);
  const found = await catalog.extents(events?.id ?? -1, (await catalog.head()).id);
  // They were committed as their sealing ended, on several threads.
  const real = found.toSorted((a, b) => Number(a.minAtNs - b.minAtNs));
  const newId = uuidV7Source(systemClock, systemRandom);
  const first = real[0];
  if (first === undefined) throw new Error("events has no extents");
  const { table, created } = await catalog.createTable({ database: "default", ...TABLES.events, name: MANY });
  if (created) {
    const others = Array.from({ length: extents - real.length }, (_, i) => i + 1);
    for (let i = 0; i < others.length; i += EXTENTS_PER_COMMIT) {
      const batch = others.slice(i, i + EXTENTS_PER_COMMIT);
      await commit(
        catalog,
        table,
        batch.map((place) => earlier(first, place, newId())),
      );
    }
    await commit(
      catalog,
      table,
      real.map((extent) => earlier(extent, 0, newId())),
    );
  }
  return first.minAtNs;
}

async function commit(catalog: Catalog, { id, schemaVersion }: TableRecord, extents: NewExtent[]): Promise<void> {
  const [outcome] = await catalog.commit([{ tableId: id, schemaVersion, newColumns: [], extents, ledger: [] }]);
  if (outcome?.kind !== "committed") throw new Error(`the catalog said ${outcome?.kind}`);
}

/** A copy of the extent, `places` of its own length before it. */
function earlier(extent: ExtentRecord, places: number, id: string): NewExtent {
  const shiftNs = (extent.maxAtNs - extent.minAtNs + 1n) * BigInt(places);
  return {
    ...newExtentOf(extent),
    id,
    key: places === 0 ? extent.key : `${extent.key}.${places}`,
    minAtNs: extent.minAtNs - shiftNs,
    maxAtNs: extent.maxAtNs - shiftNs,
  };
}

function newExtentOf(extent: ExtentRecord): NewExtent {
  const { tableId: _table, schemaVersion: _version, beginSnapshot: _begin, ...rest } = extent;
  return rest;
}

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { median } from "../../src/capacity/quantile.ts";
import type { NewExtent } from "../../src/catalog/catalog.ts";
import { startPostgres } from "../peers/postgres-server.ts";
import { QueryClient } from "../query/query-client.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { anExtent, aTable, commit, SECOND_NS } from "../support/commits.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import { openDuckDbExtents } from "./duckdb-extents.ts";
import { openSide, type PlanningJob, type PlanningResult, type SideName } from "./planning-side.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "catalog/planning",
  question:
    "With very many extents in the catalog, on SQLite and on PostgreSQL, how long does it take to plan a query that reads " +
    "ten of them, cold and warm, and to list them all; how much memory is that; and what does it make of a query over " +
    "HTTP? Against DuckDB with a table of its own of the same records?",
  notMeasured:
    "Extents themselves. Plans and lists are taken in a process of their own that opens the catalog, whose first plan is " +
    "cold; all sides must plan the same extents. The queries over HTTP read none. Where PostgreSQL is not installed, its " +
    "side is left out.",
  options: z.strictObject({
    extents: count.default(1_000_000).describe("in one table"),
    plans: count.default(21).describe("of one round, of which the median counts"),
  }),
  measures: {
    firstPlan: { unit: "ms", better: "less", doc: "the first plan of a process" },
    plan: { unit: "ms", better: "less", doc: "a plan after that" },
    planMemory: { unit: "MiB", better: "less", doc: "resident after planning, above what the open catalog takes" },
    list: { unit: "ms", better: "less", doc: "all extents, each as an object" },
    listMemory: { unit: "MiB", better: "less", doc: "the most while listing, above what the open catalog takes" },
    firstQuery: { unit: "ms", better: "less", doc: "over HTTP: the first query of a server" },
    query: { unit: "ms", better: "less", doc: "over HTTP: a query after that" },
    firstListing: { unit: "ms", better: "less", doc: "over HTTP: the first count of system.extents" },
    listing: { unit: "ms", better: "less", doc: "over HTTP: a count of system.extents after that" },
    idle: { unit: "MiB", better: "less", doc: "resident memory of the server before its first query" },
    above: { unit: "MiB", better: "less", doc: "the most memory of the server above that" },
  },
  rounds: 3,
  hasPeers: true,
  open: async ({ extents, plans }, { folder }) => {
    const home = join(folder, "home");
    await mkdir(home, { recursive: true });
    const postgres = await startPostgres();
    const close = async () => {
      await postgres?.stop();
    };
    try {
      const places: [SideName, string][] = [["sqlite", join(home, "catalog.db")]];
      if (postgres !== undefined) places.push(["postgres", await postgres.createDatabase()]);
      places.push(["duckdb", join(folder, "extents.duckdb")]);
      const seeded = await seed(places, extents);
      const check = sameFound();
      const sideOf = (one: Seeded): Side => ({
        name: one.side,
        round: async () => {
          const planned = await runChild({ ...one, extents, plans });
          check(one.side, planned.found);
          const asked = one.side === "duckdb" ? {} : await overHttp({ ...one, home, extents, plans });
          return { ...valuesOf(planned), ...asked };
        },
        processes: () => (one.side === "postgres" && postgres !== undefined ? { postgres: postgres.pid } : {}),
      });
      return { sides: seeded.map(sideOf), close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

const TABLE = "planning";
const EXTENTS_PER_COMMIT = 1_000;
const LISTINGS = 3;
const CHILD = fileURLToPath(new URL("./planning-child.ts", import.meta.url));

/** Throws for a plan of other extents than the first one. */
function sameFound(): (side: SideName, found: string) => void {
  let first: string | undefined;
  return (side, found) => {
    first ??= found;
    if (found !== first) throw new Error(`${side} plans ${found}, others ${first}`);
  };
}

type Seeded = { side: SideName; place: string; tableId: number };

/** Gives all sides the same extents. */
async function seed(places: readonly [SideName, string][], count: number): Promise<Seeded[]> {
  const seeders: Seeder[] = [];
  try {
    for (const [side, place] of places) seeders.push(await openSeeder(side, place));
    for (let i = 0; i < count; i += EXTENTS_PER_COMMIT) {
      const size = Math.min(EXTENTS_PER_COMMIT, count - i);
      const batch = Array.from({ length: size }, (_, j) => anExtent(BigInt(i + j) * SECOND_NS));
      for (const { append } of seeders) await append(batch);
    }
    return seeders.map(({ seeded }) => seeded);
  } finally {
    for (const { close } of seeders) await close();
  }
}

type Seeder = {
  seeded: Seeded;
  append: (batch: readonly NewExtent[]) => Promise<void>;
  close: () => Promise<void>;
};

async function openSeeder(side: SideName, place: string): Promise<Seeder> {
  if (side === "duckdb") {
    const { append, close } = await openDuckDbExtents(place);
    return { seeded: { side, place, tableId: 0 }, append, close: async () => close() };
  }
  const catalog = await openSide(side, place);
  const table = await aTable([catalog], TABLE);
  return {
    seeded: { side, place, tableId: table.id },
    append: (batch) => commit(catalog, table, batch),
    close: () => catalog.close(),
  };
}

async function runChild(job: PlanningJob): Promise<PlanningResult> {
  const child = fork(CHILD, [JSON.stringify(job)], { execArgv: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const ended = once(child, "exit");
  const result = await new Promise<PlanningResult>((resolve, reject) => {
    child.once("message", (message) => resolve(message as PlanningResult));
    child.once("disconnect", () => reject(new Error(`${job.side} failed`)));
  });
  await ended;
  return result;
}

function valuesOf({ firstPlanMs, planMs, planBytes, listMs, listBytes }: PlanningResult): Record<string, number> {
  return {
    firstPlan: firstPlanMs,
    plan: planMs,
    planMemory: planBytes / MIB,
    list: listMs,
    listMemory: listBytes / MIB,
  };
}

type HttpJob = Pick<Seeded, "side" | "place"> & { home: string; extents: number; plans: number };

/** Queries that read no extent, so that planning and listing are all there is to them. */
async function overHttp({ side, place, home, extents, plans }: HttpJob): Promise<Record<string, number>> {
  const planned = `SELECT count(*) AS n FROM ${TABLE} WHERE "at" >= make_timestamp_ns(${BigInt(extents + 1) * SECOND_NS})`;
  const listed = "SELECT count(*) AS n FROM system.extents";
  const server = await startBenchServer({ home, env: side === "postgres" ? { ENGINE_CATALOG_URL: place } : {} });
  const client = new QueryClient(server.url, { database: "bench" });
  try {
    const idleBytes = server.memory().residentBytes;
    const ask = async (sql: string, n: number) => {
      const { body, ms } = await client.run(sql, { keep: true });
      if (body !== `{"n":${n}}\n`) throw new Error(`${side} answers ${body}`);
      return ms;
    };
    const askOften = async (sql: string, n: number, times: number) => {
      const more: number[] = [];
      for (let i = 0; i < times; i++) more.push(await ask(sql, n));
      return median(more);
    };
    return {
      firstQuery: await ask(planned, 0),
      query: await askOften(planned, 0, plans),
      firstListing: await ask(listed, extents),
      listing: await askOften(listed, extents, LISTINGS),
      idle: idleBytes / MIB,
      above: (server.memory().peakBytes - idleBytes) / MIB,
    };
  } finally {
    client.close();
    await server.stop();
  }
}

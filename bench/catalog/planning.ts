import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NewExtent } from "../../src/catalog/catalog.ts";
import { startPostgres } from "../peers/postgres-server.ts";
import { QueryClient } from "../query/query-client.ts";
import { readArguments } from "../support/arguments.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import { anExtent, aTable, commit, SECOND_NS } from "../support/commits.ts";
import { openDuckDbExtents } from "./duckdb-extents.ts";
import { openSide, type PlanningJob, type PlanningResult, type SideName } from "./planning-side.ts";

/**
 * Question: with very many extents in the catalog, how long does it take to plan a query that reads ten of them, cold
 * and warm, and to list them all; how much memory is that; and what does it make of a query over HTTP? Against DuckDB
 * with a table of its own of the same records, asked for the same ones.
 *
 *     node bench/catalog/planning.ts [--extents 1000000] [--rounds 3] [--plans 21]
 *
 * `plan` and `list` are taken in a process of their own that opens the catalog: the first plan is cold.
 */
const OPTIONS = {
  extents: { type: "string", default: "1000000" },
  rounds: { type: "string", default: "3" },
  plans: { type: "string", default: "21" },
} as const;

const TABLE = "planning";
const EXTENTS_PER_COMMIT = 1_000;
const CHILD = fileURLToPath(new URL("./planning-child.ts", import.meta.url));

type Seeded = { side: SideName; place: string; tableId: number };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const [extents, rounds, plans] = [options.count("extents"), options.count("rounds"), options.count("plans")];
  console.log(machine());
  await withTemporaryFolder(async (folder) => {
    const home = join(folder, "home");
    await mkdir(home);
    const postgres = await startPostgres();
    try {
      const places: [SideName, string][] = [
        ["sqlite", join(home, "catalog.db")],
        ...(postgres === undefined ? [] : [["postgres", postgresUrl(postgres.port)] satisfies [SideName, string]]),
        ["duckdb", join(folder, "extents.duckdb")],
      ];
      const sides = await seed(places, extents);
      await comparePlans(sides, { extents, rounds, plans });
      await compareQueries(sides, { home, extents, plans });
    } finally {
      await postgres?.stop();
    }
  });
}

function postgresUrl(port: number): string {
  return `postgres://bench@127.0.0.1:${port}/postgres`;
}

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

/** Each side in turn, in fresh processes; all must find the same extents. */
async function comparePlans(
  sides: readonly Seeded[],
  { extents, rounds, plans }: { extents: number; rounds: number; plans: number },
): Promise<void> {
  const results = new Map<Seeded, PlanningResult[]>(sides.map((side) => [side, []]));
  for (let round = 0; round < rounds; round++) {
    let found: string | undefined;
    for (const side of sides) {
      const result = await runChild({ ...side, extents, plans });
      found ??= result.found;
      if (result.found !== found) throw new Error(`${side.side} plans ${result.found}, others ${found}`);
      results.get(side)?.push(result);
    }
  }
  const columns: [string, (result: PlanningResult) => number][] = [
    ["first plan ms", (result) => result.firstPlanMs],
    ["plan ms", (result) => result.planMs],
    ["MiB for planning", (result) => result.planBytes / MIB],
    ["list ms", (result) => result.listMs],
    ["MiB for listing", (result) => result.listBytes / MIB],
  ];
  const of = (side: Seeded, figure: (result: PlanningResult) => number) =>
    median((results.get(side) ?? []).map(figure));
  console.log(`\n${extents} extents: planning a query that reads ten, and listing all`);
  printTable(
    ["", ...columns.map(([name]) => name)],
    sides.map((side) => [side.side, ...columns.map(([, figure]) => shown(of(side, figure)))]),
  );
  const peer = sides.at(-1);
  for (const side of sides) {
    if (peer === undefined || side === peer) continue;
    const ratio = (figure: (result: PlanningResult) => number) => shown(of(side, figure) / of(peer, figure));
    const [first, plan, list] = [columns[0], columns[1], columns[3]].map((column) => ratio(column?.[1] ?? (() => NaN)));
    console.log(`${side.side} / ${peer.side}: first plan ${first}×, plan ${plan}×, list ${list}× the time`);
  }
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

/** Queries that read no extent, so that planning and listing are all there is to them. */
async function compareQueries(
  sides: readonly Seeded[],
  { home, extents, plans }: { home: string; extents: number; plans: number },
): Promise<void> {
  const planned = `SELECT count(*) AS n FROM ${TABLE} WHERE "at" >= make_timestamp_ns(${BigInt(extents + 1) * SECOND_NS})`;
  const listed = "SELECT count(*) AS n FROM system.extents";
  const rows: string[][] = [];
  for (const { side, place } of sides) {
    if (side === "duckdb") continue;
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
        const first = await ask(sql, n);
        const more: number[] = [];
        for (let i = 0; i < times; i++) more.push(await ask(sql, n));
        return [first, median(more)];
      };
      const figures = [...(await askOften(planned, 0, plans)), ...(await askOften(listed, extents, LISTINGS))];
      const peakBytes = server.memory().peakBytes - idleBytes;
      rows.push([side, ...figures.map(shown), shown(idleBytes / MIB), shown(peakBytes / MIB)]);
    } finally {
      client.close();
      await server.stop();
    }
  }
  console.log("\nover HTTP, milliseconds: a query that reads none of them, and SELECT count(*) FROM system.extents");
  printTable(["", "first query", "query", "first listing", "listing", "idle MiB", "MiB above"], rows);
}

const LISTINGS = 3;

if (import.meta.main) await main(process.argv.slice(2));

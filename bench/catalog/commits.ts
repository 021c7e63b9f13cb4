import { join } from "node:path";
import type { Catalog } from "../../src/catalog/catalog.ts";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import { openPostgresCatalog } from "../../src/catalog/postgres/postgres.ts";
import { openSqliteCatalog } from "../../src/catalog/sqlite/sqlite.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { startPostgres } from "../peers/postgres-server.ts";
import { readArguments, type Arguments } from "../support/arguments.ts";
import { anExtent, aTable, commit, SECOND_NS } from "../support/commits.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import { median, quantile } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";

/**
 * Questions: how many commits a second does the catalog make for 1, 8 and 32 writers, each of which waits for its last
 * commit; what is one commit of very many extents; and how long does planning take on a table of very many extents?
 *
 *     node bench/catalog/commits.ts [--seconds 5] [--extents 100000,1000000] [--nodes 4] [--writers 1,8,32]
 *
 * PostgreSQL is this machine's own, as it comes (`fsync=on`), on loopback. `nodes` are catalogs opened beside each
 * other, with connections of their own, among which the writers are shared out.
 */
const OPTIONS = {
  seconds: { type: "string", default: "5" },
  extents: { type: "string", default: "100000" },
  nodes: { type: "string", default: "4" },
  writers: { type: "string", default: "1,8,32" },
} as const;

export const EXTENTS_PER_COMMIT = 1_000;
const PLANNINGS = 21;
export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  await withTemporaryFolder(async (folder) => {
    const path = join(folder, "catalog.db");
    const open = () =>
      openSqliteCatalog({ path, clock: systemClock, log: silentLog, migrations: MIGRATIONS, mode: "server" });
    await measure("sqlite", open, 1, options);
  });
  const server = await startPostgres();
  if (server === undefined) return;
  try {
    const open = () =>
      openPostgresCatalog({
        url: `postgres://bench@127.0.0.1:${server.port}/postgres`,
        clock: systemClock,
        random: systemRandom,
        migrations: MIGRATIONS,
        mode: "server",
        maxConnections: 16,
        acquireTimeoutMs: 30_000,
      });
    await measure("postgres", open, options.count("nodes"), options);
  } finally {
    await server.stop();
  }
}

async function measure(side: string, open: () => Promise<Catalog>, nodes: number, options: Arguments): Promise<void> {
  const first = await open();
  const others = await Promise.all(Array.from({ length: nodes - 1 }, open));
  const catalogs = [first, ...others];
  try {
    const runs = [];
    for (const nodes of catalogs.length > 1 ? [[first], catalogs] : [[first]]) {
      for (const writers of numbersIn(options, "writers"))
        runs.push([side, ...(await measureCommits(nodes, writers, options))]);
    }
    printTable(["side", "nodes", "writers", "commits/s", "p50 ms", "p99 ms"], runs);
    for (const extents of numbersIn(options, "extents")) {
      await measurePlanning(side, first, open, extents);
    }
  } finally {
    await Promise.all(catalogs.map((catalog) => catalog.close()));
  }
}

/** Commits of one extent and one key each. */
async function measureCommits(nodes: readonly Catalog[], writers: number, options: Arguments): Promise<string[]> {
  const table = await aTable(nodes, `commits_${nodes.length}_${writers}`);
  const latenciesMs: number[] = [];
  const over = new AbortController();
  const writer = async (catalog: Catalog) => {
    while (!over.signal.aborted) {
      const startedMs = systemClock.monotonicMs();
      await commit(catalog, table, [anExtent(0n)]);
      latenciesMs.push(systemClock.monotonicMs() - startedMs);
    }
  };
  // Connections open and statements are prepared before the time counts.
  await Promise.all(nodes.map((catalog) => commit(catalog, table, [anExtent(0n)])));
  const startedMs = systemClock.monotonicMs();
  const all = Array.from({ length: writers }, (_, i) => nodes[i % nodes.length]).flatMap((node) => node ?? []);
  const running = all.map(writer);
  await sleep(systemClock, options.count("seconds") * 1_000);
  over.abort();
  await Promise.all(running);
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  const sorted = Float64Array.from(latenciesMs).sort();
  const figures = [sorted.length / seconds, quantile(sorted, 0.5), quantile(sorted, 0.99)];
  return [String(nodes.length), String(writers), ...figures.map(shown)];
}

async function measurePlanning(
  side: string,
  catalog: Catalog,
  open: () => Promise<Catalog>,
  count: number,
): Promise<void> {
  const table = await aTable([catalog], `planning_${count}`);
  const bulkMs: number[] = [];
  for (let i = 0; i < count; i += EXTENTS_PER_COMMIT) {
    const size = Math.min(EXTENTS_PER_COMMIT, count - i);
    const batch = Array.from({ length: size }, (_, j) => anExtent(BigInt(i + j) * SECOND_NS));
    bulkMs.push(await timeOf(() => commit(catalog, table, batch)));
  }
  // SQLite has one server at a time, and its reader's index is as cold as that of a server just started.
  const reader = side === "sqlite" ? catalog : await open();
  const plan = async () => {
    const { id: atSnapshot } = await reader.head();
    const range = { minNs: BigInt(count - 10) * SECOND_NS };
    const tests = [{ kind: "within", column: "c3", ranges: [{ min: 5n }] }] as const;
    const { extents, total } = await reader.planScan({ tableId: table.id, atSnapshot, filters: [{ range, tests }] });
    if (total.extents < count || extents.length < 10) throw new Error("the plan misses extents");
  };
  const coldMs = await timeOf(plan);
  const warmMs: number[] = [];
  const freshMs: number[] = [];
  for (let i = 0; i < PLANNINGS; i++) {
    warmMs.push(await timeOf(plan));
    await commit(catalog, table, [anExtent(BigInt(count) * SECOND_NS)]);
    freshMs.push(await timeOf(plan));
  }
  if (reader !== catalog) await reader.close();
  printTable(
    ["side", "extents", `commit of ${EXTENTS_PER_COMMIT} ms`, "first plan ms", "plan ms", "plan after a commit ms"],
    [[side, String(count), ...[median(bulkMs), coldMs, median(warmMs), median(freshMs)].map(shown)]],
  );
}

function numbersIn(options: Arguments, name: string): number[] {
  return (options.text(name) ?? "").split(",").map(Number);
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = systemClock.monotonicMs();
  await work();
  return systemClock.monotonicMs() - startedMs;
}

if (import.meta.main) await main(process.argv.slice(2));

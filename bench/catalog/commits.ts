import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { quantile } from "../../src/capacity/quantile.ts";
import type { Catalog } from "../../src/catalog/catalog.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { startPostgres } from "../peers/postgres-server.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { anExtent, aTable, commit, SECOND_NS } from "../support/commits.ts";
import { openPostgres, openSqlite } from "../support/open-catalog.ts";

export const benchmark = defineBenchmark({
  name: "catalog/commits",
  question:
    "How many commits a second does the catalog make, on SQLite and on PostgreSQL, for writers that each wait for their " +
    "last one?",
  notMeasured:
    "Extents themselves, networks, and a catalog that has grown: `growth` has that. PostgreSQL is this machine's, as it " +
    "comes (fsync=on); where there is none, its side is left out.",
  options: z.strictObject({
    writers: z.coerce.number().int().positive().default(8).describe("1 and 32 are worth a look, too"),
    nodes: z.coerce.number().int().positive().default(1).describe("catalogs on PostgreSQL that the writers share"),
    extents: z.coerce.number().int().positive().default(1).describe("in one commit"),
    seconds: z.coerce.number().positive().default(2).describe("of one round"),
  }),
  measures: {
    commits: { unit: "commits/s", better: "more", doc: "of all writers" },
    p50: { unit: "ms", better: "less", doc: "wait of one" },
    p99: { unit: "ms", better: "less", doc: "wait of one" },
  },
  rounds: 7,
  open: async ({ nodes, ...options }, { folder }) => {
    await mkdir(folder, { recursive: true });
    const postgres = await startPostgres();
    const opened: Catalog[] = [];
    const close = async () => {
      for (const catalog of opened) await catalog.close();
      await postgres?.stop();
    };
    try {
      const sqlite = await openSqlite(join(folder, "catalog.db"));
      opened.push(sqlite);
      const sides = [sideOf("sqlite", [sqlite], options)];
      if (postgres !== undefined) {
        const catalogs: Catalog[] = [];
        const url = await postgres.createDatabase();
        for (let i = 0; i < nodes; i++) catalogs.push(await openPostgres(url));
        opened.push(...catalogs);
        sides.push({ ...sideOf("postgres", catalogs, options), processes: () => ({ postgres: postgres.pid }) });
      }
      return { sides, close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

type Load = { writers: number; extents: number; seconds: number };

function sideOf(name: string, catalogs: readonly Catalog[], { writers, extents, seconds }: Load): Side {
  let done = 0;
  const round = async () => {
    const table = await aTable(catalogs, `round_${done++}`);
    const waitsMs: number[] = [];
    const over = new AbortController();
    const write = async (catalog: Catalog) => {
      while (!over.signal.aborted) {
        const own = Array.from({ length: extents }, (_, i) => anExtent(BigInt(i) * SECOND_NS));
        const startedMs = systemClock.monotonicMs();
        await commit(catalog, table, own);
        waitsMs.push(systemClock.monotonicMs() - startedMs);
      }
    };
    const startedMs = systemClock.monotonicMs();
    const shares = Array.from({ length: writers }, (_, i) => catalogs[i % catalogs.length]);
    const running = shares.flatMap((catalog) => (catalog === undefined ? [] : [write(catalog)]));
    await sleep(systemClock, seconds * 1_000);
    over.abort();
    await Promise.all(running);
    const tookSeconds = (systemClock.monotonicMs() - startedMs) / 1_000;
    const sorted = Float64Array.from(waitsMs).sort();
    return { commits: sorted.length / tookSeconds, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
  };
  return { name, round };
}

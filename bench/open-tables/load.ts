import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { median } from "../../src/capacity/quantile.ts";
import type { Catalog, NewExtent, TableRecord } from "../../src/catalog/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { withCatalog } from "../support/catalog.ts";
import { anExtent, aTable, commit } from "../support/commits.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "open-tables/load",
  question:
    "How long does a client of the Iceberg catalog wait for a table of very many files: when they are not listed in the " +
    "store yet, when they are, and after one merge; and how many objects are written then?",
  notMeasured:
    "What the client does with it, and the files: they are in the catalog alone. The catalog is SQLite, the store a local " +
    "disk. Files lie on days of a hundred each, with bounds of twelve columns.",
  options: z.strictObject({
    files: count.default(10_000),
    loads: count.default(11).describe("of a table that is listed; the median counts"),
  }),
  measures: {
    first: { unit: "ms", better: "less", doc: "the first load: nothing is listed" },
    load: { unit: "ms", better: "less", doc: "a load of what is listed" },
    unchanged: { unit: "ms", better: "less", doc: "the same with the entity tag of the answer before" },
    merged: { unit: "ms", better: "less", doc: "the first load after a merge of twenty files" },
    objects: { unit: "objects", better: "less", doc: "objects written for that" },
    above: {
      unit: "MiB",
      better: "less",
      doc: "the most memory of the server above what it takes before the first load",
    },
  },
  rounds: 3,
  open: async ({ files, loads }, { folder }) => {
    let rounds = 0;
    const round = async (): Promise<Record<string, number>> => {
      const home = join(folder, `home-${rounds++}`);
      await mkdir(home, { recursive: true });
      const inputs = await withCatalog(home, (catalog) => seed(catalog, files));
      const server = await startBenchServer({ home });
      try {
        return await measure(server, { home, files, loads, inputs });
      } finally {
        await server.stop();
      }
    };
    return { sides: [{ name: "engine", round }], close: async () => {} };
  },
});

const DAY_NS = 86_400_000_000_000n;
const FILES_PER_DAY = 100;
const FILES_PER_COMMIT = 1_000;
const MERGED_FILES = 20;
// Earlier snapshots are listed in the background meanwhile, which changes the answer with all of them.
const PATH = "/iceberg/v1/namespaces/bench/tables/t?snapshots=refs";

/** Gives a table its files; resolves to some of one day. */
async function seed(catalog: Catalog, files: number): Promise<NewExtent[]> {
  const table = await aTable([catalog], "t");
  const made: NewExtent[] = [];
  for (let i = 0; i < files; i += FILES_PER_COMMIT) {
    const batch = Array.from({ length: Math.min(FILES_PER_COMMIT, files - i) }, (_, j) => aFile(i + j));
    await commit(catalog, table, batch);
    if (made.length < MERGED_FILES) made.push(...batch.slice(0, MERGED_FILES));
  }
  return made;
}

function aFile(i: number): NewExtent {
  const extent = anExtent(20_000n * DAY_NS + (BigInt(i) * DAY_NS) / BigInt(FILES_PER_DAY));
  return { ...extent, key: extent.key.replace(/tlm$/, "parquet"), format: "parquet", formatVersion: 2 };
}

type Job = { home: string; files: number; loads: number; inputs: readonly NewExtent[] };

async function measure(server: BenchServer, { home, files, loads, inputs }: Job): Promise<Record<string, number>> {
  const load = async (tag?: string) => {
    const startedMs = systemClock.monotonicMs();
    const answer = await fetch(server.url + PATH, { headers: tag === undefined ? {} : { "If-None-Match": tag } });
    const text = await answer.text();
    const ms = systemClock.monotonicMs() - startedMs;
    if (answer.status !== (tag === undefined ? 200 : 304)) throw new Error(`the answer was ${answer.status}: ${text}`);
    return { ms, text, tag: answer.headers.get("etag") ?? "" };
  };
  const often = async (tag?: string) => {
    const ms: number[] = [];
    for (let i = 0; i < loads; i++) ms.push((await load(tag)).ms);
    return median(ms);
  };
  // A connection, and code that every request runs.
  await fetch(`${server.url}/iceberg/v1/namespaces`).then((answer) => answer.text());
  const idleBytes = server.memory().residentBytes;
  const first = await load();
  check(first.text, files);
  const listed = await often();
  const unchanged = await often(first.tag);
  const before = await objectsIn(home);
  await withCatalog(home, (catalog) => merge(catalog, inputs), "admin");
  const merged = await load();
  check(merged.text, files - inputs.length + 1);
  return {
    first: first.ms,
    load: listed,
    unchanged,
    merged: merged.ms,
    objects: (await objectsIn(home)) - before,
    above: (server.memory().peakBytes - idleBytes) / MIB,
  };
}

function check(text: string, files: number): void {
  const { metadata } = JSON.parse(text) as { metadata: { snapshots: { summary: Record<string, string> }[] } };
  const found = metadata.snapshots.at(-1)?.summary["total-data-files"];
  if (found !== String(files)) throw new Error(`the table has ${found} files, not ${files}`);
}

async function merge(catalog: Catalog, inputs: readonly NewExtent[]): Promise<void> {
  const table: TableRecord | undefined = await catalog.table("bench", "t");
  if (table === undefined) throw new Error("the table is gone");
  const { id: tableId, schemaVersion } = table;
  const rows = inputs.reduce((sum, extent) => sum + extent.rows, 0);
  const outputs = [{ ...aFile(0), rows }];
  const made = await catalog.mergeExtents({ tableId, schemaVersion, inputs: inputs.map(({ id }) => id), outputs });
  if (made === undefined) throw new Error("the merge came too late");
}

async function objectsIn(home: string): Promise<number> {
  const entries = await readdir(join(home, "data", "engine", "_iceberg"), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).length;
}

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Catalog, ExtentRecord, TableRecord } from "../catalog/catalog.ts";
import type { CatalogDatabase } from "../catalog/catalog-database.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { systemRandom } from "../core/random.ts";
import { standInJob, type StandInJob } from "../fabric/running-job.test-kit.ts";
import type { ColumnSpec, ExtentFormat } from "../format/types.ts";
import { loadDuckDb, quoteText, runSql } from "../io/duckdb/duckdb.ts";
import { tlmToParquet } from "../io/duckdb/parquet.test-kit.ts";
import { tlmFixture, type FixtureRow } from "../io/duckdb/tlm.test-kit.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { writeFile } from "node:fs/promises";
import { openBench, type Bench } from "./compaction.test-kit.ts";
import { createDeleteRows, DELETE_ROWS, type DeleteRowsPorts, type Matcher } from "./delete-rows.ts";
import { DeletionReports } from "./deletion-reports.ts";

const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "who", type: { kind: "string" } },
];
const AT = 1_704_067_200_000_000_000n;
const DAY_NS = 86_400_000_000_000n;

let bench: Bench & { catalog: CatalogDatabase };
let table: TableRecord;
/** Names by extent: what the stand-in for queries knows. */
let names: Map<string, string[]>;

beforeEach(async () => {
  bench = (await openBench()) as typeof bench;
  ({ table } = await bench.catalog.createTable({ database: "d", name: "t", columns: COLUMNS }));
  names = new Map();
});
afterEach(async () => {
  await bench.catalog.verify();
  await bench.close();
});

const rowsOf = (who: readonly string[], day = 0n): FixtureRow[] =>
  who.map((name, i) => ({ at: AT + day * DAY_NS + BigInt(i), who: name }));

async function add(
  who: readonly string[],
  { format = "tlm", day = 0n }: { format?: ExtentFormat; day?: bigint } = {},
): Promise<string> {
  const [id = ""] = await bench.add(table, [{ format, columns: COLUMNS, rows: rowsOf(who, day) }]);
  names.set(id, [...who]);
  return id;
}

/** Matches rows whose name is the condition. */
const matcher: Matcher = {
  async count({ where, extentIds }) {
    const counts = extentIds.map((id): [string, number] => [id, known(id).filter((name) => name === where).length]);
    return new Map(counts.filter(([, count]) => count > 0));
  },
  async writeOthers({ where, extentIds }, path) {
    const left = extentIds.flatMap((id) => known(id)).filter((name) => name !== where);
    await writeFile(path, await tlmToParquet(tlmFixture(COLUMNS, rowsOf(left), 3_000)));
    return left.length;
  },
};

function known(id: string): string[] {
  const found = names.get(id);
  if (found === undefined) throw new Error(`the matcher does not know ${id}`);
  return found;
}

type Result = { rows: number; extents_ended: number; extents_rewritten: number; snapshot_id: number };

async function run(where: string, ports: Partial<DeleteRowsPorts> = {}, job: Partial<StandInJob> = {}) {
  const newId = uuidV7Source(bench.clock, systemRandom);
  const records = bench.catalog.records;
  const handler = createDeleteRows(
    { ...bench, newId, log: silentLog, records, matcher, ...ports },
    {
      keyPrefix: "engine",
      tempDir: join(bench.folder, "deletions"),
      limits: { memoryBytes: 256 * 1024 * 1024, spillBytes: 1024 ** 3, threads: 1 },
      cpuShare: 1,
      ioBytesPerSec: 0,
    },
  );
  const payload = { database: "d", table: "t", table_id: table.id, where };
  const running = standInJob({ kind: DELETE_ROWS.name, database: "d", payload, id: newId(), ...job });
  return { result: (await handler.run(running)) as Result, job: running };
}

/** The names that live extents have, by their order in time. */
async function stored(): Promise<string[]> {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  const found: string[] = [];
  for (const { key, format, id } of await bench.live(table)) {
    if (format === "tlm") {
      found.push(...known(id));
      continue;
    }
    const path = bench.store.localPath?.(key) ?? "";
    const rows = await runSql(duckdb, connection, `SELECT who FROM read_parquet(${quoteText(path)})`);
    found.push(...rows.map(([who]) => who ?? ""));
  }
  return found.toSorted();
}

const leftovers = () => readdir(join(bench.folder, "deletions"));

function withCalls(calls: Partial<Catalog>): Catalog {
  return new Proxy<Catalog>(bench.catalog, {
    get: (target, name) => Reflect.get(calls, name) ?? (Reflect.get(target, name) as () => unknown).bind(target),
  });
}

test("ends extents that match whole, writes the others again, and leaves those without a match as they are", async () => {
  const whole = await add(["a", "a"]);
  const partly = await add(["a", "b", "c"]);
  const other = await add(["b"]);
  const nextDay = await add(["a", "d"], { format: "parquet", day: 1n });
  const before = await bench.catalog.head();
  const { result, job } = await run("a");
  const head = await bench.catalog.head();
  expect(head.id).toBe(before.id + 1);
  expect(result).toMatchObject({ rows: 4, extents_ended: 1, extents_rewritten: 2, snapshot_id: head.id });
  expect(await stored()).toEqual(["b", "b", "c", "d"]);
  const live = await bench.live(table);
  expect(live.map(({ id }) => id)).toContain(other);
  for (const id of [whole, partly, nextDay]) expect(live.map((extent) => extent.id)).not.toContain(id);
  const written = live.filter(({ id }) => id !== other);
  expect(written.map(({ format }) => format)).toEqual(["parquet", "parquet"]);
  expect(written.every((extent) => extent.stats.some(({ name }) => name === "who"))).toBe(true);
  await expect(bench.catalog.extents(table.id, before.id)).rejects.toMatchObject({ code: "snapshot_expired" });
  expect(await leftovers()).toEqual([]);
  expect(job.snapshots.at(-1)).toEqual({ phase: "commit", extents: 3, of: 3 });
  const report = await new DeletionReports(bench.catalog.records).find(job.id);
  expect(report).toMatchObject({ rows: 4, where: "a", deletedBy: "anonymous", table: "t", snapshotId: head.id });
});

test("the counts of misfits stay as far as there are rows for them", async () => {
  const who = ["a", "b", "c"];
  const [id = ""] = await bench.add(table, [{ columns: COLUMNS, rows: rowsOf(who), misfits: { at: 2 } }]);
  names.set(id, who);
  const at = table.columns[0]?.id ?? 0;
  await run("a");
  expect(await bench.catalog.misfits(table.id)).toEqual(new Map([[at, 2]]));
  const [rewritten] = await bench.live(table);
  names.set(rewritten?.id ?? "", ["b", "c"]);
  await run("b");
  expect(await bench.catalog.misfits(table.id)).toEqual(new Map([[at, 1]]));
});

test("run again after its commit it does nothing and says the same", async () => {
  await add(["a", "b"]);
  const { result, job } = await run("a");
  await add(["a"]);
  const again = await run("a", {}, { id: job.id });
  expect(again.result).toEqual(result);
  expect(await stored()).toEqual(["a", "b"]);
});

test("makes a snapshot when nothing matched: older ones may have such rows", async () => {
  await add(["b"]);
  const before = await bench.catalog.head();
  expect((await run("a")).result).toMatchObject({ rows: 0, extents_ended: 0, extents_rewritten: 0 });
  await expect(bench.catalog.extents(table.id, before.id)).rejects.toMatchObject({ code: "snapshot_expired" });
  expect(await stored()).toEqual(["b"]);
});

describe("others at work", () => {
  /** The catalog, in which something happens before the first commits. */
  const disturbed = (times: number, happens: (turn: number) => Promise<void>): Catalog => {
    let turn = 0;
    return withCalls({
      async deleteRows(deletion) {
        if (turn++ < times) await happens(turn);
        return await bench.catalog.deleteRows(deletion);
      },
    });
  };
  const merge = async (ids: readonly string[]): Promise<string> => {
    const all = ids.flatMap((id) => known(id));
    const bytes = await tlmToParquet(tlmFixture(COLUMNS, rowsOf(all), 3_000));
    const id = uuidV7Source(bench.clock, systemRandom)();
    const inputs = (await bench.live(table)).filter((extent) => ids.includes(extent.id));
    const [first] = inputs as [ExtentRecord];
    const key = `engine/d/t/2024-01-01/${id}.parquet`;
    await bench.store.put(key, bytes);
    const { checksumOf } = await import("../format/checksum.ts");
    const described = { ...first, id, key, format: "parquet" as const, rows: all.length, sizeBytes: bytes.byteLength };
    const output = { ...described, checksum: checksumOf(bytes), maxAtNs: AT + BigInt(all.length - 1) };
    names.set(id, all);
    await bench.catalog.mergeExtents({ tableId: table.id, schemaVersion: 1, inputs: ids, outputs: [output] });
    return id;
  };

  test("merges of what is to end: the job looks at what they made, and keeps what it has done", async () => {
    const [x, y, z] = [await add(["a", "b"]), await add(["c"]), await add(["a", "d"], { day: 1n })];
    let asked = 0;
    const counting: Matcher = {
      count: (request) => {
        asked += request.extentIds.length;
        return matcher.count(request);
      },
      writeOthers: (request, path) => matcher.writeOthers(request, path),
    };
    const catalog = disturbed(1, async () => void (await merge([x, y])));
    const { result } = await run("a", { catalog, matcher: counting });
    expect(result).toMatchObject({ rows: 2, extents_rewritten: 2 });
    expect(await stored()).toEqual(["b", "c", "d"]);
    expect(asked).toBe(4);
    expect((await bench.live(table)).map(({ id }) => id)).not.toContain(z);
    // What was written for the commit that came too late is gone; the inputs are there for queries that began before.
    expect((await bench.objects()).filter((key) => key.includes("/t/"))).toHaveLength(4 + 2);
  });

  test("rows that come meanwhile stay, and so does the deletion's answer", async () => {
    await add(["a", "b"]);
    const catalog = disturbed(1, async () => void (await add(["a"])));
    expect((await run("a", { catalog })).result).toMatchObject({ rows: 1 });
    expect(await stored()).toEqual(["a", "b"]);
  });

  test("a drop ends it, and one under the same name is not touched", async () => {
    await add(["a", "b"]);
    const catalog = disturbed(1, async () => {
      await bench.catalog.dropTable(table.id);
      await bench.catalog.createTable({ database: "d", name: "t", columns: COLUMNS });
    });
    await expect(run("a", { catalog })).rejects.toMatchObject({ code: "table_not_found" });
    expect((await bench.objects()).filter((key) => key.includes("/t/"))).toHaveLength(1);
  });

  test("who is always slower gives up, having changed nothing", async () => {
    await add(["a", "b"]);
    const catalog = withCalls({ deleteRows: () => Promise.resolve(undefined) });
    const objects = await bench.objects();
    await expect(run("a", { catalog })).rejects.toMatchObject({ failure: { retryable: true } });
    expect(await bench.objects()).toEqual(objects);
    expect(await stored()).toEqual(["a", "b"]);
  });

  test("a snapshot that expires under it is no reason to fail", async () => {
    await add(["a", "b"]);
    let isFirst = true;
    const expiring: Matcher = {
      count: (request) => matcher.count(request),
      async writeOthers(request, path) {
        if (!isFirst) return await matcher.writeOthers(request, path);
        isFirst = false;
        const { snapshotExpired } = await import("../catalog/refusals.ts");
        throw snapshotExpired(request.snapshot, await bench.catalog.head());
      },
    };
    expect((await run("a", { matcher: expiring })).result).toMatchObject({ rows: 1 });
    expect(await stored()).toEqual(["b"]);
  });
});

describe("leaves all as it was", () => {
  const unchanged = async (ports: Partial<DeleteRowsPorts>, reason: RegExp) => {
    await add(["a", "b"]);
    await add(["a", "c"], { day: 1n });
    const [objects, head] = [await bench.objects(), await bench.catalog.head()];
    await expect(run("a", ports)).rejects.toThrow(reason);
    expect(await bench.objects()).toEqual(objects);
    expect(await bench.catalog.head()).toEqual(head);
    expect(await leftovers()).toEqual([]);
    // Another run succeeds.
    expect((await run("a")).result.rows).toBe(2);
    expect(await stored()).toEqual(["b", "c"]);
  };

  test("when a condition answers otherwise the second time", async () => {
    const changing: Matcher = {
      count: (request) => matcher.count(request),
      writeOthers: (request, path) => matcher.writeOthers({ ...request, where: "nothing" }, path),
    };
    await unchanged({ matcher: changing }, /one thing and then another/);
  });

  test("when an upload fails", async () => {
    let uploads = 0;
    const store = new Proxy<ObjectStore>(bench.store, {
      get: (target, name) => {
        if (name === "putFile" && uploads++ > 0) return () => Promise.reject(new Error("the store is full"));
        return (Reflect.get(target, name) as () => unknown).bind(target);
      },
    });
    await unchanged({ store }, /the store is full/);
  });

  test("when the catalog refuses", async () => {
    const { EngineError } = await import("../core/errors.ts");
    const refusing = withCalls({ deleteRows: () => Promise.reject(new EngineError("unavailable", "it is away")) });
    await unchanged({ catalog: refusing }, /it is away/);
  });
});

test("an answer of the catalog that is lost leaves the rows gone, and the report tells the next attempt", async () => {
  await add(["a", "b"]);
  const losing = withCalls({
    async deleteRows(deletion) {
      await bench.catalog.deleteRows(deletion);
      throw new Error("the connection was lost");
    },
  });
  const id = "01900000-0000-7000-8000-00000000abcd";
  await expect(run("a", { catalog: losing }, { id })).rejects.toThrow("the connection was lost");
  expect(await stored()).toEqual(["b"]);
  expect((await run("a", {}, { id })).result).toMatchObject({ rows: 1, extents_rewritten: 1 });
});

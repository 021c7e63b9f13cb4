import { setTimeout as delay } from "node:timers/promises";
import { openTestCatalog } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { systemClock } from "../../src/core/clock.ts";
import { Semaphore } from "../../src/core/concurrency.ts";
import { messageOf } from "../../src/core/errors.ts";
import { silentLog } from "../../src/core/log.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { systemRandom } from "../../src/core/random.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import type { ObjectStore } from "../../src/io/objectstore/objectstore.ts";
import { openS3Store } from "../../src/io/objectstore/s3/s3.ts";
import { rowsOf } from "../support/client.ts";
import type { ChaosLoad, Sent } from "./chaos-load.ts";
import type { LocalCluster } from "./local-cluster.ts";

/** What must hold of a cluster whatever was done to its processes. */

/** Longer than the lease of a committer that was killed, and than one waits before it tries again what it could not read. */
const VISIBLE_WITHIN_MS = 90_000;
const READS_AT_ONCE = 8;

/**
 * Compares what both edges answer with what the clients were told: each acknowledged row is there once, with what it
 * says in the columns that came with it; a request that was never acknowledged is there whole or not at all.
 */
export async function checkAnswers(cluster: LocalCluster, load: ChaosLoad): Promise<string[]> {
  const problems: string[] = [];
  const byTable = Map.groupBy(load.sent.values(), ({ table }) => table);
  for (const [table, sent] of byTable) {
    await untilVisible(cluster, load, table);
    for (const edge of cluster.edges) {
      const found = checkTable(edge, table, sent).catch((error: unknown) => [`${table}: ${messageOf(error)}`]);
      problems.push(...(await found));
    }
  }
  return problems;
}

/** A committer that has been down may have a lot to do: as long as more comes, more is waited for. */
async function untilVisible({ edges }: LocalCluster, load: ChaosLoad, table: string): Promise<void> {
  const [edge = ""] = edges;
  const { acknowledged } = load.rowsOf(table);
  let seen = 0;
  let untilMs = systemClock.monotonicMs() + VISIBLE_WITHIN_MS;
  while (seen < acknowledged && systemClock.monotonicMs() < untilMs) {
    // A server may still be coming back; whether all is there is for the check to say.
    const rows = await rowsOf(edge, `SELECT count(*) AS rows FROM ${table}`).catch(() => []);
    const visible = Number(rows[0]?.["rows"] ?? 0);
    if (visible > seen) untilMs = systemClock.monotonicMs() + VISIBLE_WITHIN_MS;
    seen = Math.max(seen, visible);
    await delay(100);
  }
}

async function checkTable(edge: string, table: string, sent: readonly Sent[]): Promise<string[]> {
  const problems: string[] = [];
  const sql = `SELECT label, count(*) AS rows, count(DISTINCT n) AS numbers FROM ${table} GROUP BY label`;
  const found = new Map((await rowsOf(edge, sql)).map((row) => [String(row["label"]), row]));
  for (const { label, rows, acknowledged } of sent) {
    const row = found.get(label);
    found.delete(label);
    const [count, numbers] = [Number(row?.["rows"] ?? 0), Number(row?.["numbers"] ?? 0)];
    const isWhole = count === rows && numbers === rows;
    if (isWhole || (!acknowledged && count === 0)) continue;
    const told = acknowledged ? "acknowledged" : "in part or twice";
    problems.push(`${table}, ${label}: ${told}, ${count} rows with ${numbers} numbers of ${rows}`);
  }
  for (const label of found.keys()) problems.push(`${table}, ${label}: rows that nobody sent`);
  return [...problems, ...(await checkColumns(edge, table, sent))];
}

/** Every value that came with an acknowledged request is in the column of its name, and nothing else is. */
async function checkColumns(edge: string, table: string, sent: readonly Sent[]): Promise<string[]> {
  const expected = new Map<string, number>();
  for (const { column, rows } of sent.filter(({ acknowledged }) => acknowledged)) {
    if (column !== undefined) expected.set(column, (expected.get(column) ?? 0) + rows);
  }
  const columns = [...expected.keys()];
  if (columns.length === 0) return [];
  const counts = columns.map(
    (name) => `count(${name}) AS ${name}, count(CASE WHEN ${name} = label || '/' || n THEN 1 END) AS right_${name}`,
  );
  const [found] = await rowsOf(edge, `SELECT ${counts.join(", ")} FROM ${table}`);
  return columns.flatMap((name) => {
    const [filled, right] = [Number(found?.[name]), Number(found?.[`right_${name}`])];
    if (filled === expected.get(name) && right === filled) return [];
    return [`${table}.${name}: ${expected.get(name)} values were acknowledged, found ${filled}, right ${right}`];
  });
}

/**
 * Checks the catalog's invariants, that every live extent has exactly its bytes, and that nothing staged is left or was
 * set aside as damaged. Nobody may compact meanwhile.
 */
export async function checkStorage(cluster: LocalCluster): Promise<string[]> {
  try {
    return await withStorage(cluster, async ({ catalog, store }) => {
      await catalog.verify();
      return [...(await checkExtents(catalog, store)), ...(await checkStaged(store))];
    });
  } catch (error) {
    return [`the storage does not hold: ${messageOf(error)}`];
  }
}

type TestCatalog = Awaited<ReturnType<typeof openTestCatalog>>;

/** Opens the catalog and the store of a cluster beside its servers. */
export async function withStorage<T>(
  { catalogUrl, store: connection }: LocalCluster,
  use: (storage: { catalog: TestCatalog; store: ObjectStore }) => Promise<T>,
): Promise<T> {
  const ports = { clock: systemClock, random: systemRandom, log: silentLog, metrics: createMetrics() };
  const store = openS3Store({ ...connection, ...ports });
  const catalog = await openTestCatalog(catalogUrl);
  try {
    return await use({ catalog, store });
  } finally {
    store.close();
    await catalog.close();
  }
}

async function checkExtents(catalog: TestCatalog, store: ObjectStore): Promise<string[]> {
  const problems: string[] = [];
  const turns = new Semaphore(READS_AT_ONCE);
  const head = await catalog.head();
  for (const table of await catalog.allTables()) {
    const extents = await catalog.extents(table.id, head.id, {}, []);
    const checks = extents.map(({ id, key, checksum }) =>
      turns.run(async () => {
        if (checksumOf(await store.get(key)) !== checksum) problems.push(`extent ${id} does not have its bytes`);
      }),
    );
    await Promise.all(checks);
  }
  return problems;
}

async function checkStaged(store: ObjectStore): Promise<string[]> {
  const problems: string[] = [];
  for (const folder of ["_staged", "_damaged"]) {
    for await (const { key } of store.list(`engine/${folder}/`)) problems.push(`${key} is left`);
  }
  return problems;
}

import { afterEach, beforeEach, expect, test } from "vitest";
import type { TableRecord } from "../catalog/catalog.ts";
import { unpublishedTotals } from "../catalog/publishable.ts";
import type { ColumnSpec } from "../format/types.ts";
import { openBench, type Bench } from "./compaction.test-kit.ts";
import { PUBLICATION_METRICS } from "./metrics.ts";
import { FINISHED_BYTES } from "./pick.ts";

const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "int" } },
];
/** 2024-01-01T00:00:00Z */
const START_NS = 19_723n * 86_400_000_000_000n;
const DAY_NS = 86_400_000_000_000n;

let bench: Bench;
let table: TableRecord;
beforeEach(async () => {
  bench = await openBench();
  ({ table } = await bench.catalog.createTable({ database: "d", name: "t", columns: COLUMNS }));
});
afterEach(() => bench.close());

const turn = () => ({ lease: bench.lease, signal: new AbortController().signal });
const extent = (n: number, atNs = START_NS) => ({ columns: COLUMNS, rows: [{ at: atNs + BigInt(n), n }] });
const head = async () => (await bench.catalog.head()).id;
const formats = async () =>
  (await bench.live(table)).map(({ format, formatVersion, rows }) => `${format} ${formatVersion} ${rows}`).sort();
/** A minute is far less than what makes a day quiet; the fixtures are of long ago, so days are settled at the start. */
const PATIENT = { minExtents: 100 };

/** Lets a compactor pass that finds nothing to settle for the next minutes. */
async function settled(...options: Parameters<Bench["compactor"]>) {
  const compactor = bench.compactor(...options);
  await compactor(turn());
  return compactor;
}

test("what is asked for is merged, day by day, up to the snapshot; then the request is gone", async () => {
  const compactor = await settled(PATIENT);
  await bench.add(table, [extent(1), extent(2), extent(3, START_NS + DAY_NS)]);
  const upTo = await head();
  await bench.add(table, [extent(4, START_NS + 2n * DAY_NS)]);
  await compactor(turn());
  expect(await formats()).toEqual(["tlm 1 1", "tlm 1 1", "tlm 1 1", "tlm 1 1"]);
  await bench.requests.ask({ tableId: table.id, whole: false, upTo }, 60_000);
  await compactor(turn());
  expect(await formats()).toEqual(["parquet 2 1", "parquet 2 2", "tlm 1 1"]);
  expect(await bench.requests.open()).toEqual([]);
  expect(bench.failures).toEqual([]);
  const { unpublishedRows, unpublishedBytes, unpublishedAge } = PUBLICATION_METRICS.of(bench.metrics);
  expect((await unpublishedRows.get()).values[0]?.value).toBe(1);
  expect((await unpublishedBytes.get()).values[0]?.value).toBeGreaterThan(0);
  expect((await unpublishedAge.get()).values[0]?.value).toBeGreaterThanOrEqual(0);
  const { unpublishedRowsOfTable } = PUBLICATION_METRICS.of(bench.metrics);
  expect((await unpublishedRowsOfTable.get()).values).toMatchObject([
    { labels: { table: `${table.database}.${table.name}` }, value: 1 },
  ]);
});

test("finished files of version 1 are written anew only where they are asked for", async () => {
  await bench.add(table, [{ ...extent(1), format: "parquet", claims: { sizeBytes: FINISHED_BYTES } }]);
  const compactor = await settled({ ...PATIENT, maxLagMs: 1 });
  const upTo = await head();
  await bench.requests.ask({ tableId: table.id, whole: false, upTo }, 60_000);
  await compactor(turn());
  expect([await formats(), await bench.requests.open()]).toEqual([["parquet 1 1"], []]);
  expect(await unpublishedTotals(bench.catalog, table.id)).toMatchObject({ extents: 1, rows: 1 });
  await bench.requests.ask({ tableId: table.id, whole: true, upTo }, 60_000);
  await compactor(turn());
  expect([await formats(), await bench.requests.open()]).toEqual([["parquet 2 1"], []]);
  expect(bench.failures).toEqual([]);
});

test("a request ends where the rest cannot be merged, and waits where a merge has failed", async () => {
  const compactor = await settled(PATIENT);
  const [damaged] = await bench.add(table, [{ ...extent(1), claims: { checksum: "crc32:00000000" } }]);
  await bench.requests.ask({ tableId: table.id, whole: false, upTo: await head() }, 60_000);
  await compactor(turn());
  expect(bench.failures).toHaveLength(1);
  expect((await bench.live(table)).map(({ id }) => id)).toEqual([damaged]);
  expect(await bench.requests.open()).toEqual([]);
  const store = new Proxy(bench.store, {
    get: (inner, name) => {
      if (name === "putFile") return () => Promise.reject(new Error("no room"));
      const value: unknown = Reflect.get(inner, name);
      return typeof value === "function" ? (value.bind(inner) as unknown) : value;
    },
  });
  const failing = await settled(PATIENT, { store });
  await bench.add(table, [extent(2, START_NS + DAY_NS)]);
  await bench.requests.ask({ tableId: table.id, whole: false, upTo: await head() }, 60_000);
  await failing(turn());
  expect(await bench.requests.open()).toHaveLength(1);
  await compactor(turn());
  expect(await formats()).toEqual(["parquet 2 1", "tlm 1 1"]);
});

test("of two requests the later counts; one that nobody renews lapses, and a later one is not lost with the first", async () => {
  const of = { tableId: table.id, whole: false };
  await bench.requests.ask({ ...of, upTo: 7 }, 60_000);
  await bench.requests.ask({ ...of, upTo: 5 }, 1_000);
  expect(await bench.requests.open()).toEqual([{ ...of, upTo: 7 }]);
  await bench.requests.finish({ ...of, upTo: 5 });
  expect([await bench.requests.isOpen(of), await bench.requests.renew(of, 60_000)]).toEqual([true, true]);
  await bench.requests.finish({ ...of, upTo: 7 });
  expect([await bench.requests.isOpen(of), await bench.requests.renew(of, 60_000)]).toEqual([false, false]);
  await bench.requests.ask({ ...of, upTo: 9 }, 0);
  expect([await bench.requests.isOpen(of), await bench.requests.open()]).toEqual([false, []]);
});

test("one that is withdrawn lapses soon, unless somebody else renews it", async () => {
  const of = { tableId: table.id, whole: true };
  await bench.requests.ask({ ...of, upTo: 7 }, 60_000);
  await bench.requests.withdraw(of, 60_000_000);
  await bench.requests.withdraw({ ...of, whole: false }, 0);
  expect(await bench.requests.isOpen(of)).toBe(true);
  await bench.requests.withdraw(of, 0);
  expect([await bench.requests.isOpen(of), await bench.requests.open()]).toEqual([false, []]);
  expect([await bench.requests.renew(of, 60_000), await bench.requests.isOpen(of)]).toEqual([true, true]);
});

test("with a bound what is older is merged although its level is not full", async () => {
  const compactor = await settled({ ...PATIENT, maxLagMs: 60_000 });
  await bench.add(table, [extent(1)]);
  await compactor(turn());
  expect(await formats()).toEqual(["tlm 1 1"]);
  bench.clock.aheadMs = 61_000;
  await compactor(turn());
  expect(await formats()).toEqual(["parquet 2 1"]);
  // The next one of the day goes alone.
  await bench.add(table, [extent(2)]);
  bench.clock.aheadMs = 122_000;
  await compactor(turn());
  expect(await formats()).toEqual(["parquet 2 1", "parquet 2 1"]);
});

test("a table's own bound goes before that of the server, also where that has none", async () => {
  const created = await Promise.all(
    [60, 0].map(async (openLagSecs) => {
      const request = { database: "d", name: `own-${openLagSecs}`, columns: COLUMNS, openLagSecs };
      return (await bench.catalog.createTable(request)).table;
    }),
  );
  const tables = [table, ...created];
  const compactors = { none: await settled(PATIENT), long: await settled({ ...PATIENT, maxLagMs: 600_000 }) };
  for (const of of tables) await bench.add(of, [extent(1)]);
  const waiting = async () => await Promise.all(tables.map(async ({ id }) => (await unpublishedOf(id)) > 0));
  const unpublishedOf = async (id: number) => (await unpublishedTotals(bench.catalog, id)).extents;
  await compactors.none(turn());
  expect(await waiting()).toEqual([true, true, true]);
  bench.clock.aheadMs = 61_000;
  await compactors.none(turn());
  expect(await waiting()).toEqual([true, false, true]);
  bench.clock.aheadMs = 601_000;
  await compactors.long(turn());
  expect(await waiting()).toEqual([false, false, true]);
  // Who sets it later is heard at the next look.
  const [, , patient] = tables;
  await bench.catalog.setOpenLag(patient?.id ?? 0, 1);
  await compactors.none(turn());
  expect(await waiting()).toEqual([false, false, false]);
  expect(bench.failures).toEqual([]);
});

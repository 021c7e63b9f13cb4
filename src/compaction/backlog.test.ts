import { afterEach, beforeEach, expect, it } from "vitest";
import type { TableRecord } from "../catalog/catalog.ts";
import { openBench, type Bench } from "./compaction.test-kit.ts";
import { COMPACTION_METRICS } from "./metrics.ts";

const COLUMNS = [
  { name: "at", type: { kind: "timestamp" as const } },
  { name: "n", type: { kind: "int" as const } },
];
/** 2024-01-01T00:00:00Z */
const START_NS = 19_723n * 86_400_000_000_000n;

let bench: Bench;
let table: TableRecord;
beforeEach(async () => {
  bench = await openBench();
  ({ table } = await bench.catalog.createTable({ database: "d", name: "t", columns: COLUMNS }));
});
afterEach(() => bench.close());

const turn = () => ({ lease: bench.lease, signal: new AbortController().signal });
const add = (count: number) =>
  bench.add(
    table,
    Array.from({ length: count }, (_, n) => ({ columns: COLUMNS, rows: [{ at: START_NS + BigInt(n), n }] })),
  );

/** Days, extents, and whether there are bytes. */
async function backlog(): Promise<[number | undefined, number | undefined, boolean]> {
  const { backlogDays, backlogExtents, backlogBytes } = COMPACTION_METRICS.of(bench.metrics);
  const [days, extents, bytes] = await Promise.all(
    [backlogDays, backlogExtents, backlogBytes].map(async (gauge) => (await gauge.get()).values[0]?.value),
  );
  return [days, extents, (bytes ?? 0) > 0];
}

it("is what is to be merged: nothing once it is merged, all of it as long as that fails", async () => {
  const compactor = bench.compactor({ minExtents: 4 });
  await add(3);
  await compactor(turn());
  expect(await backlog()).toEqual([0, 0, false]);
  await add(3);
  const failing = new Proxy(bench.store, {
    get: (store, name) => {
      if (name === "putFile") return () => Promise.reject(new Error("no room"));
      const value: unknown = Reflect.get(store, name);
      return typeof value === "function" ? (value.bind(store) as unknown) : value;
    },
  });
  await bench.compactor({ minExtents: 4 }, { store: failing })(turn());
  expect(bench.failures.splice(0)).toHaveLength(1);
  expect(await backlog()).toEqual([1, 6, true]);
  await compactor(turn());
  expect(await bench.live(table)).toHaveLength(1);
  expect(await backlog()).toEqual([0, 0, false]);
});

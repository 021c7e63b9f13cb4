import { afterEach, beforeEach, expect, test } from "vitest";
import type { Caller } from "../auth/caller.ts";
import { Arrivals, type ArrivalPosition, type ArrivalsPage } from "./arrivals.ts";
import { createQueryHarness, type QueryHarness } from "./query.test-kit.ts";

const CALLER: Caller = { subject: "dreaming", kind: "internal", role: "read", databases: ["d"] };
const COLUMNS = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "long" } },
] as const;

let harness: QueryHarness;
let arrivals: Arrivals;

beforeEach(async () => {
  harness = createQueryHarness();
  const at = (second: number): bigint => BigInt(Date.UTC(2026, 0, 1, 0, 0, second)) * 1_000_000n;
  await harness.addTable("d", "firehose", COLUMNS, [
    { format: "tlm", columns: COLUMNS, rows: [3, 1, 2].map((n) => ({ at: at(n), n: BigInt(n) })), snapshot: 1 },
    { format: "tlm", columns: COLUMNS, rows: [5, 4, 4, 4].map((n) => ({ at: at(n), n: BigInt(n) })), snapshot: 2 },
  ]);
  arrivals = new Arrivals({
    query: () => Promise.resolve(harness.service),
    catalog: harness.catalog,
    newId: () => "id",
    nowMs: () => Date.now(),
  });
});
afterEach(() => harness.close());

const read = (position: ArrivalPosition | undefined, rows = 100, bytes = 1_000_000): Promise<ArrivalsPage> =>
  arrivals.read({
    caller: CALLER,
    database: "d",
    table: "firehose",
    position,
    rows,
    bytes,
    signal: new AbortController().signal,
  });
const numbers = ({ rows }: ArrivalsPage): number[] =>
  rows.map(({ text }) => Number((JSON.parse(text) as { n: unknown }).n));

/** All rows in pages. */
async function readAll(rows: number, bytes?: number): Promise<{ all: number[]; ids: string[] }> {
  const [all, ids]: [number[], string[]] = [[], []];
  for (let position: ArrivalPosition | undefined; ;) {
    const page = await read(position, rows, bytes);
    all.push(...numbers(page));
    ids.push(...page.rows.map(({ id }) => id));
    position = JSON.parse(JSON.stringify(page.position)) as ArrivalPosition;
    if (page.isEnd) return { all, ids };
  }
}

test.each([1, 2, 3, 100])("rows come in the order of their commits, each once, %i at a time", async (rows) => {
  const { all, ids } = await readAll(rows);
  expect(all).toEqual([3, 1, 2, 5, 4, 4, 4]);
  expect(new Set(ids).size).toBe(7);
});

test("a page ends with the bytes that it may have", async () => {
  expect(numbers(await read(undefined, 100, 1))).toEqual([3]);
  expect((await readAll(100, 1)).all).toEqual([3, 1, 2, 5, 4, 4, 4]);
});

test("at the end there is nothing", async () => {
  const { position } = await read(undefined);
  expect(await read(position)).toEqual({ rows: [], position, isEnd: true });
});

test.each([1, 2, 100])("what cannot be read by commits is read by time, %i at a time", async (rows) => {
  harness.expireSnapshots(2);
  const { all, ids } = await readAll(rows);
  expect(all).toEqual([1, 2, 3, 4, 4, 4, 5]);
  expect(new Set(ids).size).toBe(7);
});

test("a catch-up goes on after the newest time that was read, and ends by commits", async () => {
  const first = await read(undefined, 3);
  expect(numbers(first)).toEqual([3, 1, 2]);
  harness.expireSnapshots(2);
  const rest = await read(first.position);
  expect(numbers(rest)).toEqual([4, 4, 4, 5]);
  expect(rest.position?.next).toMatchObject({ row: 0 });
  harness.expireSnapshots(0);
  expect((await read(rest.position)).rows).toEqual([]);
});

test("a table that was made anew is read from its first row; one that is not there has none", async () => {
  const { position } = await read(undefined);
  if (position === undefined) throw new Error("there is a table");
  expect(numbers(await read({ ...position, tableId: position.tableId + 1 }))).toHaveLength(7);
  const none = await arrivals.read({
    caller: CALLER,
    database: "d",
    table: "other",
    position: undefined,
    rows: 1,
    bytes: 1,
    signal: new AbortController().signal,
  });
  expect(none).toEqual({ rows: [], position: undefined, isEnd: true });
});

test("it is read with the caller's databases", async () => {
  const request = { database: "d", table: "firehose", position: undefined, rows: 1, bytes: 1 };
  const refused = arrivals.read({
    ...request,
    caller: { ...CALLER, databases: ["other"] },
    signal: new AbortController().signal,
  });
  await expect(refused).rejects.toMatchObject({ code: "database_not_found" });
});

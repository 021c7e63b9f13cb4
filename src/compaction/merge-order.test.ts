import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { drawnRandom } from "../core/drawn-seed.test-kit.ts";
import { checksumOf } from "../format/checksum.ts";
import { tlmFixture } from "../io/duckdb/tlm.test-kit.ts";
import { endsOfDays, orderRows, timeAt } from "./merge-order.ts";
import type { MergeInput } from "./merge.ts";

const DAY_NS = 86_400_000_000_000n;
const START_NS = 20_000n * DAY_NS;
const COLUMNS = [{ name: "at", type: { kind: "timestamp" } }] as const;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-order-"));
});
afterEach(() => rm(folder, { recursive: true }));

/** An input with these times, in several batches. */
async function input(id: number, times: readonly (bigint | null)[], rows = times.length): Promise<MergeInput> {
  const fixture = times.map((at) => ({ at }));
  const bytes = tlmFixture(COLUMNS, fixture, 701);
  const path = join(folder, `${id}.tlm`);
  await writeFile(path, bytes);
  return { id: String(id), path, format: "tlm", rows, checksum: checksumOf(bytes) };
}

const random = drawnRandom();
const offset = (range: number): bigint => BigInt(Math.floor(random.next() * range));
const make = (count: number, at: (i: number) => bigint): bigint[] => Array.from({ length: count }, (_, i) => at(i));

describe("the order of rows", () => {
  it.each([
    ["sorted", make(3_000, (i) => START_NS + BigInt(i) * 7_000_000n)],
    ["of one time", make(3_000, () => START_NS)],
    ["nearly sorted, many at a time", make(5_000, (i) => START_NS + (BigInt(i) * 100_000n + offset(5e8)) / 1_000_000n)],
    ["the other way round", make(3_000, (i) => START_NS - BigInt(i))],
    ["anywhere within days", make(5_000, () => START_NS + offset(5 * 86_400e9))],
    ["in one burst, but for a few", make(5_000, (i) => START_NS + (i % 500 === 0 ? offset(86_400e9) : offset(3_000)))],
    ["before 1970", make(3_000, () => -5n * DAY_NS + offset(86_400e9))],
  ])("is by time and then by arrival: %s", async (_what, times) => {
    const third = Math.ceil(times.length / 3);
    const parts = [times.slice(0, third), [], times.slice(third, 2 * third), times.slice(2 * third)];
    const inputs = await Promise.all(parts.filter((part) => part.length > 0).map((part, i) => input(i, part)));
    const order = orderRows(inputs);
    if (order === undefined) throw new Error("no order");
    const expected = times.map((_, i) => i).sort((a, b) => compare(times[a], times[b]) || a - b);
    expect([...order.rows]).toEqual(expected);
    expect(timeAt(order, 0)).toBe(times[expected[0] ?? 0]);
    expect(timeAt(order, times.length - 1)).toBe(times[expected.at(-1) ?? 0]);

    const sorted = expected.map((row) => times[row] ?? 0n);
    const days = sorted.map(dayOf);
    const ends = days.flatMap((day, i) => (i + 1 === days.length || days[i + 1] !== day ? [i + 1] : []));
    expect(endsOfDays(order)).toEqual(ends);

    const { first, last } = order.spans;
    const owners = expected.map((row) => Math.floor(row / third));
    expect([...first]).toEqual(inputs.map((_, i) => owners.indexOf(i)));
    expect([...last]).toEqual(inputs.map((_, i) => owners.lastIndexOf(i)));
  });

  it("is none for times that are far apart or missing, and for other formats", async () => {
    const near = await input(1, [START_NS, START_NS + 20n * DAY_NS]);
    expect(orderRows([near])).toBeDefined();
    expect(orderRows([await input(2, [START_NS, START_NS + 40n * DAY_NS])])).toBeUndefined();
    expect(orderRows([await input(3, [-(2n ** 63n), 2n ** 63n - 1n])])).toBeUndefined();
    expect(orderRows([await input(4, [START_NS, null])])).toBeUndefined();
    expect(orderRows([near, { ...near, format: "parquet" }])).toBeUndefined();
    expect(orderRows([])).toBeUndefined();
  });

  it.each([1, 3])("is refused when an input has another number of rows than was committed: %i", async (rows) => {
    const wrong = await input(1, [START_NS, START_NS], rows);
    expect(() => orderRows([wrong])).toThrow("rows");
  });
});

function compare(a = 0n, b = 0n): number {
  return a < b ? -1 : Number(a > b);
}

function dayOf(at: bigint): bigint {
  return at / DAY_NS - (at % DAY_NS < 0n ? 1n : 0n);
}

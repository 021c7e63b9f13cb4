import { afterEach, beforeEach, expect, it } from "vitest";
import type { NewExtent, TableRecord } from "../../catalog/catalog.ts";
import { aFlush, anExtent, column } from "../../catalog/contract-fixtures.test-kit.ts";
import type { SqliteCatalog } from "../../catalog/sqlite/sqlite-catalog.ts";
import { openMemoryCatalog } from "../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../core/clock.ts";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import { ExtentPages, type ExtentReader } from "./extents.ts";

const SECOND_NS = 1_000_000_000n;
const DAY_NS = 86_400n * SECOND_NS;
/** 2024-01-01T00:00:00Z */
const START_NS = 19_723n * DAY_NS;
const FLUSH_EXTENTS = 5_000;

let catalog: SqliteCatalog;
/** Of every call for extents, how many came. */
let answers: number[];
let dayCalls: number;
let reader: ExtentReader;

beforeEach(() => {
  ({ catalog } = openMemoryCatalog(new ManualClock()));
  answers = [];
  dayCalls = 0;
  reader = {
    tableStats: (tableId) => catalog.tableStats(tableId),
    crowdedDays: (request) => {
      dayCalls++;
      return catalog.crowdedDays(request);
    },
    extents: async (...args) => {
      const found = await catalog.extents(...args);
      answers.push(found.length);
      return found;
    },
  };
});
afterEach(() => catalog.close());

async function tableOf(name: string, extents: readonly Partial<NewExtent>[]): Promise<TableRecord> {
  const columns = [column("at", "timestamp")];
  const { table } = await catalog.createTable({ database: "default", name, columns });
  for (let i = 0; i < extents.length; i += FLUSH_EXTENTS) {
    const flush = extents.slice(i, i + FLUSH_EXTENTS).map((extent) => anExtent({ stats: [], ...extent }));
    await catalog.commit([aFlush(table, { extents: flush })]);
  }
  return table;
}

/** Ids by pages, which must be those of the catalog, each once. */
async function mustHaveAll({ id }: TableRecord, pages: ExtentPages): Promise<number> {
  const head = (await catalog.head()).id;
  const ids: string[] = [];
  for await (const extent of pages.of(id, head)) ids.push(extent.id);
  const expected = (await catalog.extents(id, head, {}, [])).map((extent) => extent.id);
  expect(ids.length).toBe(expected.length);
  expect(new Set(ids)).toEqual(new Set(expected));
  return ids.length;
}

it("has a page of 200,000 extents in memory at a time", async () => {
  // One each 2 s, each overlapping the next: 4.6 days.
  const extents = Array.from({ length: 200_000 }, (_, i) => {
    const minAtNs = START_NS + BigInt(i) * 2n * SECOND_NS;
    return { minAtNs, maxAtNs: minAtNs + 3n * SECOND_NS };
  });
  const table = await tableOf("t", extents);
  expect(await mustHaveAll(table, new ExtentPages(reader))).toBe(200_000);
  expect(Math.max(...answers)).toBeLessThanOrEqual(20_000);
  expect(answers.length).toBeLessThanOrEqual(40);
});

it("asks once for a table with few extents, and once for the days of all others", async () => {
  const small = await tableOf("small", [{}, {}]);
  const large = ["a", "b"].map((name) =>
    tableOf(
      name,
      Array.from({ length: 30 }, (_, i) => ({
        minAtNs: START_NS + BigInt(i) * DAY_NS,
        maxAtNs: START_NS + BigInt(i) * DAY_NS,
      })),
    ),
  );
  const pages = new ExtentPages(reader, 10);
  expect(await mustHaveAll(small, pages)).toBe(2);
  expect([answers.splice(0), dayCalls]).toEqual([[2], 0]);
  for (const table of await Promise.all(large)) {
    expect(await mustHaveAll(table, pages)).toBe(30);
    expect(Math.max(...answers.splice(0))).toBeLessThanOrEqual(10);
  }
  expect(dayCalls).toBe(1);
});

it("reads what is left at once when extents lie in many ranges, or all in one", async () => {
  const wide = await tableOf(
    "wide",
    Array.from({ length: 1_000 }, (_, i) => {
      const minAtNs = START_NS + BigInt(i) * 60n * SECOND_NS;
      return { minAtNs, maxAtNs: minAtNs + 30n * DAY_NS };
    }),
  );
  expect(await mustHaveAll(wide, new ExtentPages(reader, 10))).toBe(1_000);
  // Five pages until it is noticed, and then all.
  expect(answers.length).toBeLessThanOrEqual(8);
  expect(answers.splice(0).reduce((sum, count) => sum + count, 0)).toBeLessThan(1_400);
  const crowd = await tableOf(
    "crowd",
    Array.from({ length: 1_000 }, () => ({ minAtNs: START_NS + 1n, maxAtNs: START_NS + 1n })),
  );
  expect(await mustHaveAll(crowd, new ExtentPages(reader, 10))).toBe(1_000);
  expect(answers.length).toBeLessThanOrEqual(3);
});

it("finds each extent once, wherever it lies and however wide it is", async () => {
  const random = drawnRandom();
  const below = (bound: number): number => Math.floor(random.next() * bound);
  for (let round = 0; round < 30; round++) {
    const extents = Array.from({ length: 20 + below(300) }, () => {
      const day = BigInt(below(round + 1) - below(3)) * DAY_NS;
      const minAtNs = (round % 3 === 0 ? -START_NS : START_NS) + day + BigInt(below(86_400)) * SECOND_NS;
      const widthNs = [0n, 1n, SECOND_NS, DAY_NS, 40n * DAY_NS][below(round % 2 === 0 ? 3 : 5)] ?? 0n;
      return { minAtNs, maxAtNs: minAtNs + widthNs };
    });
    const ends = [-(2n ** 63n), 2n ** 63n - 1n].map((atNs) => ({ minAtNs: atNs, maxAtNs: atNs }));
    const all = { minAtNs: -(2n ** 63n), maxAtNs: 2n ** 63n - 1n };
    const table = await tableOf(`t${round}`, [...extents, ...ends, all]);
    for (const pageExtents of [1, 7, 50]) await mustHaveAll(table, new ExtentPages(reader, pageExtents));
  }
});

it("says that a snapshot cannot be read any more", async () => {
  const { id } = await tableOf("t", [{}]);
  await catalog.expireTable(id, Number.MAX_SAFE_INTEGER);
  const [head, pages] = [await catalog.head(), new ExtentPages(reader)];
  const read = async (atSnapshot: number) => {
    let count = 0;
    for await (const _ of pages.of(id, atSnapshot)) count++;
    return count;
  };
  expect(await read(head.id)).toBe(1);
  await tableOf("other", [{}]);
  await catalog.endExtents(
    id,
    (await catalog.extents(id, head.id, {}, [])).map((extent) => extent.id),
  );
  await catalog.expireTable(id, Number.MAX_SAFE_INTEGER);
  await expect(read(head.id)).rejects.toMatchObject({ code: "snapshot_expired" });
});

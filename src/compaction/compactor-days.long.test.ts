import { expect, it } from "vitest";
import type { ColumnSpec } from "../format/types.ts";
import type { FixtureRow } from "../io/duckdb/tlm.test-kit.ts";
import { openBench } from "./compaction.test-kit.ts";

/** 2024-01-01T00:00:00Z */
const DAY_NS = 86_400_000_000_000n;
const START_NS = 19_723n * DAY_NS;

const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "int" } },
];

it("shares files among days that follow each other when there are more than 400", async () => {
  const bench = await openBench();
  try {
    const { table } = await bench.catalog.createTable({ database: "d", name: "t", columns: COLUMNS });
    // Two extents, each with a row of every other day.
    const dayRows = (from: number): FixtureRow[] =>
      Array.from({ length: 450 }, (_, i) => ({ at: START_NS + BigInt(from + i * 2) * DAY_NS, n: from + i * 2 }));
    const shared = [{ at: START_NS + 1n, n: 1 }, ...dayRows(1).slice(1)];
    await bench.add(table, [
      { columns: COLUMNS, rows: dayRows(0) },
      { columns: COLUMNS, rows: shared },
    ]);
    await bench.compactor({ minExtents: 2 })({ lease: bench.lease, signal: new AbortController().signal });
    expect(bench.failures).toEqual([]);
    const live = (await bench.live(table)).toSorted((a, b) => (a.minAtNs < b.minAtNs ? -1 : 1));
    // 899 days, three to a file; the first one has two rows.
    expect(live.map((extent) => extent.rows)).toEqual([4, ...Array.from({ length: 298 }, () => 3), 2]);
    for (const [i, { minAtNs }] of live.entries()) expect(minAtNs).toBeGreaterThan(live[i - 1]?.maxAtNs ?? 0n);
  } finally {
    await bench.close();
  }
});

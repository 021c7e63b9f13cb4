import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { columnsOfTlm, TlmReader, type TlmBatch } from "./tlm-file.ts";
import { tlmFixture } from "./tlm.test-kit.ts";

const folder = mkdtempSync(join(tmpdir(), "engine-tlm-"));
afterAll(() => rmSync(folder, { recursive: true }));

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "s", type: { kind: "string" } },
  { name: "v", type: { kind: "vector", dimensions: 2 } },
  { name: "b", type: { kind: "bool" } },
  { name: "i", type: { kind: "int" } },
];

const FILE = tlmFixture(
  COLUMNS,
  Array.from({ length: 40 }, (_, n) => ({
    at: BigInt(n),
    s: n % 3 === 0 ? null : `text ${n}`,
    v: [n, -n],
    b: n % 2 === 0,
    i: n % 5 === 0 ? null : n,
  })),
  16,
);

test("reads the columns asked for, in their order, batch by batch", () => {
  const wanted = [COLUMNS[4], COLUMNS[1]].filter((column) => column !== undefined);
  const batches = new TlmReader(wanted).read({ bytes: FILE });
  expect(batches.map(({ rows }) => rows)).toEqual([16, 16, 8]);
  const [i, s] = batches[1]?.columns ?? [];
  expect(new DataView(i?.values.buffer ?? new ArrayBuffer(0), i?.values.byteOffset).getInt32(4, true)).toBe(17);
  const [from, to] = [s?.offsets?.[0], s?.offsets?.[1]];
  expect(Buffer.from(s?.values.subarray(from, to) ?? []).toString()).toBe("text 16");
  expect([i?.nullCount, s?.nullCount]).toEqual([3, 5]);
});

test("reads files one after the other into the same memory", () => {
  const reader = new TlmReader(COLUMNS);
  const path = join(folder, "a.tlm");
  writeFileSync(path, FILE);
  const first = reader.read({ path })[0]?.columns[0]?.values;
  const again = reader.read({ path })[0]?.columns[0]?.values;
  expect(again?.buffer).toBe(first?.buffer);
  expect(again).toEqual(first);
});

test("tells the columns of a file", () => {
  expect(columnsOfTlm({ bytes: FILE })).toEqual(COLUMNS);
});

test("a column of another type is refused by name", () => {
  const wanted: ColumnSpec[] = [{ name: "I", type: { kind: "long" } }];
  expect(() => new TlmReader(wanted).read({ bytes: FILE })).toThrow('column "I" is int, not long');
});

test("every prefix of a file is refused", () => {
  for (let length = 0; length < FILE.length; length++) {
    expect(() => new TlmReader(COLUMNS).read({ bytes: FILE.subarray(0, length) })).toThrow("not an Arrow file");
  }
});

test("damaged files are refused or read within their bounds", () => {
  const random = drawnRandom();
  let refused = 0;
  for (let round = 0; round < 20_000; round++) {
    const damaged = Uint8Array.from(FILE);
    // Mostly in the footer and in headers, where the places are.
    for (let n = 0; n < 1 + random.next() * 3; n++) {
      const at = Math.floor(random.next() * damaged.length);
      damaged[at] = random.next() < 0.3 ? 0xff : Math.floor(random.next() * 256);
    }
    try {
      for (const batch of new TlmReader(COLUMNS).read({ bytes: damaged })) expectWithinBounds(batch);
    } catch (error) {
      if (!(error instanceof Error) || error.name === "AssertionError") throw error;
      refused++;
    }
  }
  expect(refused).toBeGreaterThan(1_000);
});

/** What is copied from a batch by its row count lies inside of what was read. */
function expectWithinBounds({ rows, columns }: TlmBatch): void {
  const [at, s, v, b, i] = columns;
  const spare = [
    (at?.values.byteLength ?? Infinity) - rows * 8,
    (v?.values.byteLength ?? Infinity) - rows * 8,
    (b?.values.byteLength ?? Infinity) - rows / 8,
    (i?.values.byteLength ?? Infinity) - rows * 4,
    (s?.values.byteLength ?? Infinity) - (s?.offsets?.[rows] ?? 0),
    ...columns.map((column) => (column?.nullCount ? column.validity.byteLength - rows / 8 : 0)),
  ];
  expect(Math.min(...spare)).toBeGreaterThanOrEqual(0);
}

import { expect, test } from "vitest";
import { drawnRandom } from "../core/drawn-seed.test-kit.ts";
import { ColumnSet } from "./columns/column-set.ts";
import { byteScanner } from "./ndjson/byte-scanner.ts";
import { bodyOf, randomCase } from "./ndjson/generate-cases.test-kit.ts";
import type { NdjsonBody } from "./ndjson/scanner.ts";
import { decodeTlm } from "./tlm-decode.ts";
import { tlmRowsAsNdjson } from "./tlm-rows.ts";
import { encodeTlm } from "./tlm.ts";
import type { ColumnSpec } from "./types.ts";

/** The extent of the bodies that can be read, and the columns of the table afterwards. */
function extentOf(columns: readonly ColumnSpec[], bodies: readonly NdjsonBody[]) {
  const set = new ColumnSet(columns);
  for (const body of bodies) {
    try {
      byteScanner.scan(body, set);
    } catch {
      // Rejected bodies have no rows to compare.
    }
  }
  return { bytes: encodeTlm(set), columns: set.columns.map(({ spec }) => spec), rows: set.rows };
}

/** A column that has no value is there only to tell of misfits, which are in `props` by then. */
function valuesOf(bytes: Uint8Array) {
  const { rows, columns } = decodeTlm(bytes);
  return { rows, columns: columns.filter(({ values }) => values.some((value) => value !== null)) };
}

test("rows of random extents come back as they were, under the same and under more columns", () => {
  const random = drawnRandom();
  let compared = 0;
  for (let round = 0; round < 400; round++) {
    const { columns, bodies } = randomCase(random);
    const first = extentOf(columns, bodies);
    if (first.rows === 0) continue;
    const ndjson = tlmRowsAsNdjson(first.bytes, () => true);
    const more = [...first.columns, { name: "later", type: { kind: "long" as const } }];
    for (const now of [first.columns, more]) {
      const again = extentOf(now, [{ ...bodyOf(ndjson, false), arrivedAtNs: 1n }]);
      expect(valuesOf(again.bytes)).toEqual(valuesOf(first.bytes));
    }
    compared += first.rows;
  }
  expect(compared).toBeGreaterThan(1_000);
});

test("leaves out the rows that are not to be kept", () => {
  const { bytes, columns } = extentOf(
    [{ name: "at", type: { kind: "timestamp" } }],
    [bodyOf('{"n":0,"at":-1}\n{"n":1}\n{"n":"two"}\n{"n":3}')],
  );
  const kept = tlmRowsAsNdjson(bytes, (row) => row % 2 === 0);
  expect(Buffer.from(kept).toString()).toBe(
    '{"at":"1969-12-31T23:59:59.000000000Z","n":"0"}\n{"at":"2026-01-01T00:00:00.000000007Z","n":"two"}\n',
  );
  expect(decodeTlm(extentOf(columns, [bodyOf(kept)]).bytes).rows).toBe(2);
});

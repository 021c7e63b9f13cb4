import { tableFromIPC, tableToIPC, tableFromArrays } from "apache-arrow";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { appendValue } from "./columns/column.test-kit.ts";
import { ColumnSet } from "./columns/column-set.ts";
import { BATCH_ROWS, encodeTlm } from "./tlm.ts";
import { decodeTlm, type Value } from "./tlm-decode.ts";
import { parseColumnType, type ColumnSpec } from "./types.ts";

const TYPES = ["timestamp", "bool", "int", "long", "real", "string", "dynamic", "vector(2)"];
const TABLE: ColumnSpec[] = TYPES.map((text) => {
  const type = parseColumnType(text);
  if (type === undefined) throw new Error(text);
  return { name: text === "timestamp" ? "at" : text, type };
});

function encode(rows: readonly (readonly Value[])[], target?: SharedArrayBuffer): Uint8Array {
  const set = new ColumnSet(TABLE);
  for (const row of rows) {
    for (const [index, value] of row.entries()) {
      const column = set.columns[index];
      if (column !== undefined) appendValue(column, value);
    }
    set.rows++;
  }
  return encodeTlm(set, target);
}

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const text = fc.oneof(
  fc.constantFrom("", "\u0000", "a\u0000b", "😀", "\uFEFF", "\u2028"),
  fc.string({ unit: "grapheme" }),
);
const float = fc.float({ noNaN: true, noDefaultInfinity: true });
const orNull = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null, freq: 3 });
const row: fc.Arbitrary<Value[]> = fc.tuple(
  int64,
  orNull(fc.boolean()),
  orNull(fc.integer()),
  orNull(int64),
  orNull(fc.double({ noNaN: true, noDefaultInfinity: true })),
  orNull(text),
  orNull(fc.json()),
  orNull(fc.array(float, { minLength: 2, maxLength: 2 })),
);

const rowAt = (i: number): Value[] => {
  const sparse = i % 5 === 0;
  return [
    BigInt(i),
    sparse ? null : i % 3 === 0,
    i,
    BigInt(-i),
    i / 2,
    sparse ? null : `é${i}`,
    sparse ? `${i}` : null,
    [i, -i],
  ];
};

describe("tlm", () => {
  it("gives back every value of every type", () => {
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 70 }), (rows) => {
        const decoded = decodeTlm(encode(rows));
        expect(decoded.rows).toBe(rows.length);
        for (const [index, spec] of TABLE.entries()) {
          const values = rows.map((values) => values[index] ?? null);
          const stored = decoded.columns.find((column) => column.spec.name === spec.name);
          const isEmpty = index > 0 && values.every((value) => value === null);
          expect(stored).toEqual(isEmpty ? undefined : { spec, values });
        }
      }),
      { numRuns: 200 },
    );
  });

  it("keeps rows together across batches", () => {
    const count = BATCH_ROWS * 2 + 13;
    const rows = Array.from({ length: count }, (_, i) => rowAt(i));
    const bytes = encode(rows);
    const table = tableFromIPC(bytes);
    expect(table.batches.map((batch) => batch.numRows)).toEqual([BATCH_ROWS, BATCH_ROWS, 13]);
    const { columns } = decodeTlm(bytes);
    for (const [index, { values }] of columns.entries()) {
      const wrong = rows.findIndex(
        (row, i) => JSON.stringify(values[i], asText) !== JSON.stringify(row[index], asText),
      );
      expect([index, wrong]).toEqual([index, -1]);
    }
    // A reader that knows nothing of us finds the same.
    const strings = table.getChild("string");
    expect([strings?.get(BATCH_ROWS + 1), strings?.get(count - 1), strings?.nullCount]).toEqual([
      `é${BATCH_ROWS + 1}`,
      `é${count - 1}`,
      Math.ceil(count / 5),
    ]);
  });

  it("says in its metadata what it is", () => {
    const { schema } = tableFromIPC(encode([[1n, true, 1, 1n, 1, "s", "{}", [1, 2]]]));
    expect(schema.metadata.get("engine.format_version")).toBe("1");
    expect(schema.fields.map((field) => field.metadata.get("engine.type"))).toEqual(TYPES);
    expect(schema.fields.every((field) => field.nullable)).toBe(true);
    expect(schema.fields.map((field) => String(field.type))).toEqual([
      "Timestamp<NANOSECOND, UTC>",
      "Bool",
      "Int32",
      "Int64",
      "Float64",
      "Utf8",
      "Utf8",
      "FixedSizeList[2]<Float32>",
    ]);
  });

  it("leaves out columns without values, but at", () => {
    const { columns } = decodeTlm(encode([[1n, null, 0, null, null, "", null, null]]));
    expect(columns.map(({ spec }) => spec.name)).toEqual(["at", "int", "string"]);
  });

  it("goes into the buffer that it is given, and into one of its own when it does not fit there", () => {
    const alone = encode([[1n]]);
    for (const [size, inTarget] of [
      [alone.byteLength, true],
      [alone.byteLength - 1, false],
    ] as const) {
      const target = new SharedArrayBuffer(size);
      const bytes = encode([[1n]], target);
      expect([bytes.buffer === target, bytes.byteOffset]).toEqual([inTarget, 0]);
      expect(Buffer.compare(bytes, alone)).toBe(0);
    }
  });

  it("is told from what it is not", () => {
    const good = encode([[1n, true]]);
    const foreign = tableToIPC(tableFromArrays({ x: [1, 2] }), "file");
    const stream = tableToIPC(tableFromIPC(good), "stream");
    for (const bytes of [
      new Uint8Array(0),
      new TextEncoder().encode("PAR1"),
      good.subarray(0, good.length - 20),
      foreign,
      stream,
    ]) {
      expect(() => decodeTlm(bytes)).toThrow("not a tlm extent");
    }
    expect(() => decodeTlm(foreign)).toThrow("version");
  });
});

function asText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}n` : value;
}

import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { ColumnSet } from "../columns/column-set.ts";
import { encodeTlm } from "../tlm.ts";
import { decodeTlm } from "../tlm-decode.ts";
import { DEFAULT_SHAPE, formatColumnType, parseColumnType, type ColumnSpec } from "../types.ts";
import { byteScanner } from "./byte-scanner.ts";
import { difference } from "./differential.test-kit.ts";
import { compact, fieldValues, isKept } from "./inferred-values.test-kit.ts";
import { jsonScanner } from "./json-scanner.ts";
import { Misfits } from "./misfits.ts";
import type { BodyScanner } from "./scanner.ts";

type Options = { columns?: readonly ColumnSpec[]; scanner?: BodyScanner };

/** The bodies, one after the other into one extent. */
function scanned(bodies: readonly string[], { columns = DEFAULT_SHAPE, scanner = byteScanner }: Options = {}) {
  const set = new ColumnSet(columns);
  const misfits = bodies.map((body) => {
    const own = new Misfits();
    const bytes = new Uint8Array(Buffer.from(body));
    scanner.scan({ bytes, evolve: true, inferTypes: true, arrivedAtNs: 7n, misfits: own }, set);
    return own.all();
  });
  const { rows: count, columns: decoded } = decodeTlm(encodeTlm(set));
  const rows = Array.from({ length: count }, (_, row) => {
    const present = decoded.filter(({ spec, values }) => values[row] !== null && spec.name !== "at");
    return Object.fromEntries(present.map(({ spec, values }) => [spec.name, values[row] ?? null]));
  });
  return { set, rows, misfits };
}

const typesOf = (set: ColumnSet) => set.newColumns.map(({ name, type }) => `${name} ${formatColumnType(type)}`);
const bodyOf = (values: readonly string[]) => values.map((value) => `{"f":${value}}\n`).join("");

describe.each([
  ["the byte scanner", byteScanner],
  ["the reference", jsonScanner],
])("%s takes the type of a new column from all of a body's values:", (_name, scanner) => {
  it.each([
    ["bool", ["true", "false", "null"]],
    ["long", ["1", "-2", "3.0", "1e3", "9223372036854775807", "-9223372036854775808"]],
    ["real", ["1", "2.5"]],
    ["real", ["2.5", "1", "-0", "1e22", "0.30000000000000004", "5e-324"]],
    ["real", ["9007199254740992", "0.5"]],
    ["dynamic", ["9007199254740993", "0.5"]],
    ["dynamic", ["0.5", "9007199254740993"]],
    ["dynamic", ["1", "9223372036854775808"]],
    ["dynamic", ["9223372036854775808"]],
    ["dynamic", ["0.1000000000000000055"]],
    ["dynamic", ["1e400"]],
    ["dynamic", ["1e-400"]],
    ["timestamp", ['"2026-01-02T03:04:05Z"', '"2026-01-02T03:04:05.123456789Z"', "null"]],
    ["timestamp", ['"1677-09-21T00:12:43.145224192Z"', '"2262-04-11T23:47:16.854775807Z"']],
    ["string", ['"2026-01-02T03:04:05Z"', '"2026-01-02T03:04:05+01:00"']],
    ["string", ['"2026-01-02T03:04:05"']],
    ["string", ['"2026-01-02 03:04:05Z"']],
    ["string", ['"2026-01-02t03:04:05z"']],
    ["string", ['"2026-01-02T03:04:60Z"']],
    ["string", ['"2026-01-02T03:04:05.1234567891Z"']],
    ["string", ['"2026-02-30T03:04:05Z"']],
    ["string", ['"2262-04-11T23:47:16.854775808Z"']],
    ["string", ['"2026-01-02"']],
    ["string", ['"1"', '"true"', '""']],
    ["string", ['""']],
    ["dynamic", ['"a"', "1"]],
    ["dynamic", ["1", '"a"']],
    ["dynamic", ['"2026-01-02T03:04:05Z"', "1767225600"]],
    ["dynamic", ["true", '"true"']],
    ["dynamic", ["true", "0"]],
    ["dynamic", ["[1,2]"]],
    ["dynamic", ["1", "{}"]],
  ])("%s of %j", (type, values) => {
    for (const order of [values, values.toReversed()]) {
      const { set, rows, misfits } = scanned([bodyOf(order)], { scanner });
      expect(typesOf(set)).toEqual([`f ${type}`]);
      expect(set.newColumns).toEqual([{ name: "f", type: parseColumnType(type), inferred: true }]);
      expect(misfits).toEqual([undefined]);
      expect(rows.map((row) => Object.keys(row))).toEqual(order.map((value) => (value === "null" ? [] : ["f"])));
    }
  });

  it("none of nulls alone, which take no place among the columns that a request may add", () => {
    const nulls = Array.from({ length: 40 }, (_, i) => `"n${i}":null`).join();
    const values = Array.from({ length: 33 }, (_, i) => `"v${i}":1`).join();
    const { set, rows } = scanned([`{${nulls}}\n{${nulls}}\n{${nulls},${values}}\n`], { scanner });
    expect(typesOf(set)).toEqual(Array.from({ length: 32 }, (_, i) => `v${i} long`));
    expect(rows.at(-1)?.["props"]).toBe('{"v32":1}');
  });

  it("for each body its own, and later ones find the column as it is", () => {
    const later = ["1.5", "9007199254740993", '"x"', "2"];
    const { rows, misfits } = scanned([bodyOf(["1"]), bodyOf(later)], { scanner });
    expect(rows).toEqual([
      { f: 1n },
      { props: '{"f":1.5}' },
      { f: 9007199254740993n },
      { props: '{"f":"x"}' },
      { f: 2n },
    ]);
    expect(misfits[1]).toEqual([{ code: "kept_in_props", field: "f", type: "long", count: 2, firstLine: 1 }]);
  });

  it("a later body's values that a column would change go to props, digit for digit", () => {
    const first = '{"r":1.5,"t":"2026-01-02T03:04:05Z","b":true,"s":"x","d":[]}\n';
    const second = '{"r":0.1000000000000000055,"t":"2026-01-02T03:04:05+01:00","b":1,"s":2.50,"d":3.0}\n';
    const { rows } = scanned([first, second], { scanner });
    expect(rows[1]).toEqual({
      s: "2.50",
      d: "3.0",
      props: '{"r":0.1000000000000000055,"t":"2026-01-02T03:04:05+01:00","b":1}',
    });
  });

  it("a body that fails leaves nothing of what it has made of a field", () => {
    const set = new ColumnSet(DEFAULT_SHAPE);
    const scan = (text: string) =>
      scanner.scan({ bytes: new Uint8Array(Buffer.from(text)), evolve: true, inferTypes: true, arrivedAtNs: 7n }, set);
    expect(() => scan('{"f":1}\n{"f":0.5}\n{"f"\n')).toThrow("line 3");
    expect(typesOf(set)).toEqual([]);
    scan('{"f":"x"}\n');
    expect(typesOf(set)).toEqual(["f string"]);
  });

  it("label, body and props keep their types, and spellings of one name share a column", () => {
    const columns = DEFAULT_SHAPE.filter(({ name }) => name === "at");
    const { set } = scanned(['{"label":1,"Body":2,"props":{"a":1},"Code":1}\n{"CODE":1.5}\n'], { scanner, columns });
    expect(set.newColumns).toEqual([
      { name: "label", type: { kind: "string" } },
      { name: "Body", type: { kind: "string" } },
      { name: "props", type: { kind: "string" } },
      { name: "Code", type: { kind: "real" }, inferred: true },
    ]);
  });
});

describe("a long body", () => {
  const KINDS = ["7", "-0", "2.5", "9007199254740993", "0.1000000000000000055", "true", '"x"', '"2026-01-02T03:04:05Z"', "[1]", "null"]; // oxfmt-ignore
  /** A field keeps to one value, and from some row on now and then has the other. */
  const field = fc.record({
    one: fc.constantFrom(...KINDS),
    other: fc.constantFrom(...KINDS),
    from: fc.nat(300),
    every: fc.constantFrom(1, 1, 2, 50),
  });

  it("whose guesses fail anywhere is what the reference makes of it", () => {
    fc.assert(
      fc.property(
        fc.array(field, { minLength: 1, maxLength: 6 }),
        fc.constantFrom("\n", "", '\n{"broken', "\n\xff", "\nnull\n"),
        fc.boolean(),
        (fields, end, hasProps) => {
          const rows = Array.from({ length: 300 }, (_, row) => {
            const of = fields.map(({ one, other, from, every }, i) => {
              return `"f${i}":${row >= from && (row - from) % every === 0 ? other : one}`;
            });
            return `{${of.join()}}`;
          });
          const bytes = new Uint8Array(Buffer.from(rows.join("\n") + end, "latin1"));
          const columns = DEFAULT_SHAPE.filter(({ name }) => hasProps || name !== "props");
          const body = { bytes, evolve: true, inferTypes: true, arrivedAtNs: 7n };
          expect(difference(columns, [body, body])).toBeUndefined();
        },
      ),
      { numRuns: 30 },
    );
  });

  it("is scanned few times, however many guesses fail, and wherever", () => {
    const scans = (valueOf: (field: number, row: number) => string) => {
      const fields = (row: number) => Array.from({ length: 32 }, (_, i) => `"f${i}":${valueOf(i, row)}`).join();
      const text = Array.from({ length: 1_000 }, (_, row) => `{${fields(row)}}\n`).join("");
      const set = new ColumnSet(DEFAULT_SHAPE);
      const rollback = vi.spyOn(set, "rollback");
      byteScanner.scan(
        { bytes: new Uint8Array(Buffer.from(text)), evolve: true, inferTypes: true, arrivedAtNs: 7n },
        set,
      );
      return rollback.mock.calls.length + 1;
    };
    expect(scans(() => "1")).toBe(1);
    // All in one row; each in a row of its own, early on or spread over the body; and twice each, in the worst order.
    expect(scans((_, row) => (row === 1 ? "0.5" : "1"))).toBe(2);
    expect(scans((i, row) => (row === i + 1 ? "0.5" : "1"))).toBeLessThanOrEqual(7);
    expect(scans((i, row) => (row === i * 31 + 7 ? "0.5" : "1"))).toBeLessThanOrEqual(9);
    expect(scans((i, row) => ["1", "0.5", '"x"'][Math.floor((row + i) / 400)] ?? "1")).toBeLessThanOrEqual(12);
  });
});

describe("whatever comes", () => {
  it("every value is found again in its column, or in props digit for digit", () => {
    fc.assert(
      fc.property(fc.array(fieldValues, { minLength: 1, maxLength: 3 }), (bodies) => {
        const filled = bodies.filter((body) => body.length > 0);
        if (filled.length === 0) return;
        const { set, rows } = scanned(filled.map(bodyOf));
        const type = set.newColumns.map((column) => formatColumnType(column.type))[0] ?? "none";
        const lost = filled.flat().filter((sent, i) => {
          const { f, props } = rows[i] ?? {};
          if (sent === "null") return f !== undefined || props !== undefined;
          return f === undefined ? props !== `{"f":${compact(sent)}}` : !isKept(sent, f, type);
        });
        expect(lost).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it("the order within a body decides nothing", () => {
    fc.assert(
      fc.property(fieldValues, fc.infiniteStream(fc.nat()), (some, ranks) => {
        const shuffled = some.map((value) => ({ value, rank: ranks.next().value })).toSorted((a, b) => a.rank - b.rank);
        const one = bodyOf(some);
        const other = bodyOf(shuffled.map(({ value }) => value));
        if (some.length === 0) return;
        expect(typesOf(scanned([one]).set)).toEqual(typesOf(scanned([other]).set));
      }),
      { numRuns: 300 },
    );
  });
});

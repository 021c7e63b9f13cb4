import { describe, expect, it } from "vitest";
import { mayHold } from "../filter/filter.ts";
import { probeValues } from "../filter/probes.ts";
import type { Value } from "../tlm-decode.ts";
import { parseColumnType } from "../types.ts";
import { appendValue } from "./column.test-kit.ts";
import { filtersOf } from "./column-filters.ts";
import { createColumn, type AnyColumn } from "./create.ts";

const ROWS = 4_000;
const LARGE_BYTES = 1e9;

function columnOf(name: string, valueOf: (row: number) => Value, type = "string", rows = ROWS): AnyColumn {
  const parsed = parseColumnType(type);
  if (parsed === undefined) throw new Error(type);
  const column = createColumn({ name, type: parsed });
  for (let row = 0; row < rows; row++) appendValue(column, valueOf(row));
  return column;
}

function filtered(columns: readonly AnyColumn[], sizeBytes = LARGE_BYTES) {
  const stats = columns.map((column) => column.stats(column.rows));
  return filtersOf(columns, stats, sizeBytes);
}

const id = (row: number): string => `id ${row * 7_919}`;

describe("filters of an extent's columns", () => {
  it("are for text that looks like identifiers", () => {
    const columns = [
      columnOf("id", id),
      columnOf("user", (row) => `user ${row % 700}`),
      columnOf("level", (row) => ["INFO", "WARN", "ERROR"][row % 3] ?? ""),
      columnOf("rare", (row) => `value ${row % 200}`),
      columnOf("message", (row) => `${id(row)} ${"said a lot ".repeat(10)}`),
      columnOf("number", (row) => BigInt(row), "long"),
      columnOf("document", (row) => `{"id":${row}}`, "dynamic"),
      columnOf("sparse", (row) => (row % 10 === 0 ? id(row) : null)),
    ];
    expect(filtered(columns).map(({ name, kind }) => [name, kind])).toEqual([
      ["id", "values"],
      ["user", "values"],
    ]);
  });

  it("are not for few rows", () => {
    expect(filtered([columnOf("id", id, "string", 999)])).toEqual([]);
    expect(filtered([columnOf("id", id, "string", 1_000)])).toHaveLength(1);
  });

  it("know every value, empty ones and those between nulls too", () => {
    const values = Array.from({ length: ROWS }, (_, row) => (row % 3 === 1 ? null : row === 0 ? "" : id(row)));
    const [filter] = filtered([columnOf("id", (row) => values[row] ?? null)]);
    const may = (value: string): boolean => {
      const probe = probeValues([value]);
      return probe === undefined || filter === undefined || mayHold(filter.bytes, probe);
    };
    for (const value of values) expect(value === null || may(value)).toBe(true);
    expect(may("id -1")).toBe(false);
  });

  it("take a share of sealing's time, those of the most different values first; one there always may be", () => {
    const columns = [columnOf("a", (row) => id(row >> 1)), columnOf("b", id), columnOf("c", (row) => id(row >> 2))];
    const named = (sizeBytes: number) => filtered(columns, sizeBytes).map(({ name }) => name);
    expect(named(LARGE_BYTES)).toEqual(["b", "a", "c"]);
    expect(named(700_000)).toEqual(["b", "a"]);
    expect(named(64)).toEqual(["b"]);
  });

  it("are not for more values than a catalog's row should hold", () => {
    expect(filtered([columnOf("id", id, "string", 200_000)])).toEqual([]);
  });
});

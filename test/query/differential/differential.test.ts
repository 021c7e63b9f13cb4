import { describe, expect, test } from "vitest";
import { compareRows, parseLines, same } from "./compare.test-kit.ts";
import { checkRandomQueries } from "./random-queries.test-kit.ts";

const QUERIES = 150;

test(`${QUERIES} random queries: fresh, sealed and mixed extents answer like plain DuckDB`, { timeout: 300_000 }, () =>
  checkRandomQueries(QUERIES),
);

describe("two answers", () => {
  const differ = (a: string, b: string, ordered = false): string | undefined =>
    compareRows(parseLines(a), parseLines(b), ordered);

  test.each([
    ['{"a":1}\n{"a":2}', '{"a":2}\n{"a":1}'],
    ['{"a":1,"b":null}', '{"b":null,"a":1}'],
    ['{"a":0.1}', '{"a":0.10000000000000002}'],
    ['{"a":9223372036854775807}', '{"a":9223372036854775807}'],
    ['{"a":293.015625}', '{"a":293.01563}'],
    ['{"t":"2024-01-01T00:00:00.5Z"}', '{"t":"2024-01-01T00:00:00.500000Z"}'],
    ["", ""],
  ])("%s is %s", (a, b) => {
    expect(differ(a, b)).toBeUndefined();
  });

  test.each([
    ['{"a":1}', ""],
    ['{"a":1}\n{"a":1}', '{"a":1}\n{"a":2}'],
    ['{"a":9223372036854775807}', '{"a":9223372036854775806}'],
    ['{"a":1}', '{"a":"1"}'],
    ['{"a":null}', "{}"],
    ['{"a":[1,2]}', '{"a":[2,1]}'],
    ['{"a":{"b":1}}', '{"a":{"b":2}}'],
    ['{"a":1.00001}', '{"a":1.00002}'],
    ['{"a":293.015625}', '{"a":293.01565}'],
    ['{"a":16777216}', '{"a":16777217.0}'],
    ['{"a":0.10000001}', '{"a":0.10000002}'],
    ['{"t":"2024-01-01T00:00:00.5Z"}', '{"t":"2024-01-01T00:00:00.5"}'],
  ])("%s is not %s", (a, b) => {
    expect(differ(a, b)).toBeDefined();
  });

  test("in another order are different only where there is an order", () => {
    const [a, b] = ['{"a":1}\n{"a":2}', '{"a":2}\n{"a":1}'];
    expect(differ(a, b, true)).toContain("row 0");
    expect(same(null, undefined)).toBe(false);
  });
});

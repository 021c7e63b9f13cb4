import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

/** Text where a number should be: the message names the column, and the cast that helps. */
let harness: QueryHarness;

const failure = (sql: string) => harness.failure(sql);

beforeAll(async () => {
  harness = createQueryHarness();
  const columns = [
    { name: "at", type: { kind: "timestamp" } },
    { name: "ms", type: { kind: "string" } },
    { name: "a b", type: { kind: "string" } },
    { name: "n", type: { kind: "long" } },
    { name: "props", type: { kind: "dynamic" } },
  ] as const;
  const rows = [
    { at: 1n, ms: "12", "a b": "1", n: 1n, props: '{"ms":"5"}' },
    { at: 2n, ms: "abc", "a b": "2", n: 2n, props: '{"ms":"6"}' },
  ];
  await harness.addTable("default", "t", columns, [{ format: "tlm", columns, rows }]);
});
afterAll(() => harness.close());

const MS = '"ms" is a string column: write ms::BIGINT';

describe("while it is bound", () => {
  test.each<[sql: string, hint: string, column?: number]>([
    ["SELECT * FROM t WHERE ms > 100", MS, 26],
    ["SELECT * FROM t WHERE 100 <= ms", MS, 27],
    ["SELECT * FROM t WHERE ms > n", MS, 26],
    ["SELECT * FROM t WHERE ms < 1.5", '"ms" is a string column: write ms::DOUBLE', 26],
    ["SELECT * FROM t AS x WHERE x.ms > 100", '"ms" is a string column: write x.ms::BIGINT'],
    ['SELECT * FROM t WHERE "a b" > 1', '"a b" is a string column: write "a b"::BIGINT'],
    ["SELECT * FROM t WHERE ms BETWEEN 1 AND 3", MS],
    ["SELECT ms + 1 FROM t", MS, 11],
    ["SELECT n * ms FROM t", MS],
    ["SELECT ms / 2.5 FROM t", '"ms" is a string column: write ms::DOUBLE'],
    ["SELECT sum(ms) FROM t", `${MS}, or ms::DOUBLE for fractions`, 8],
    ["SELECT avg(ms) AS a, count(*) FROM t GROUP BY n", `${MS}, or ms::DOUBLE for fractions`],
    ["SELECT sum(ms) OVER (ORDER BY at) FROM t", `${MS}, or ms::DOUBLE for fractions`],
    ["SELECT round(ms) FROM t", `${MS}, or ms::DOUBLE for fractions`],
    ["SELECT at, ms FROM t WHERE at > now() - INTERVAL 1 HOUR AND ms > 5", MS, 64],
    ["SELECT * FROM (SELECT ms AS q FROM t) WHERE q > 3", '"q" is a string: write q::BIGINT'],
    ["WITH w AS (SELECT max(ms) AS m FROM t) SELECT m - 1 FROM w", '"m" is a string: write m::BIGINT'],
    ["SELECT * FROM t WHERE lower(ms) > 5", "lower(ms) is a string: write CAST(lower(ms) AS BIGINT)"],
    ["SELECT sum(props->>'$.ms') FROM t", "(props ->> '$.ms') is a string: write CAST((props ->> '$.ms') AS BIGINT)"],
    ["SELECT CASE WHEN n > 1 THEN ms ELSE 5 END FROM t", MS],
  ])("%s", async (sql, hint, column) => {
    const error = await failure(sql);
    expect(error.code).toBe("invalid_query");
    expect(error.details.hint).toContain(hint);
    expect(error.message).toContain(hint);
    expect(error.message).not.toContain("\n");
    expect(hint).toContain(error.details.suggestion);
    expect(error.details).toMatchObject({ line: 1, column: column ?? error.details.column });
  });

  test.each([
    "SELECT sum(DISTINCT ms::BIGINT) FROM t WHERE n = 1",
    "SELECT ms::BIGINT + 1 FROM t WHERE n = 1",
    "SELECT * FROM t WHERE TRY_CAST(ms AS BIGINT) > 10",
  ])("what it says works: %s", async (sql) => {
    expect(await harness.rows(sql)).toHaveLength(1);
  });

  test.each(["SELECT nope(ms) FROM t", "SELECT sum(at) FROM t", "SELECT sum('a') FROM t", "SELECT ms[n] + 1 FROM"])(
    "nothing is guessed of %s",
    async (sql) => {
      expect((await failure(sql)).details.hint).toBeUndefined();
    },
  );
});

describe("while it runs", () => {
  const TRY = "TRY_CAST(ms AS BIGINT)";
  test.each<[sql: string, hint: string, column?: number]>([
    ["SELECT * FROM t WHERE ms = 12", `${MS}, or ${TRY} for NULL where its text is none`, 23],
    ["SELECT * FROM t WHERE ms IN (1, 2)", `${MS}, or ${TRY}`],
    ["SELECT * FROM t JOIN (SELECT 12 AS k) x ON t.ms = x.k", "write t.ms::BIGINT, or TRY_CAST(t.ms AS BIGINT)"],
    ["SELECT ms::BIGINT FROM t", `"ms" is a string column: write ${TRY} for NULL`, 10],
    ["SELECT sum(CAST(ms AS DOUBLE)) FROM t", "write TRY_CAST(ms AS DOUBLE) for NULL"],
    ["SELECT m::INTEGER FROM (SELECT ms AS m FROM t)", "write TRY_CAST(m AS BIGINT) for NULL"],
  ])("%s", async (sql, hint, column) => {
    const error = await failure(sql);
    expect(error).toMatchObject({ code: "execution_error", status: 400 });
    expect(error.details.hint).toContain(hint);
    expect(error.message).toContain("Could not convert string 'abc' to ");
    expect(error.details).toMatchObject({ line: 1, column: column ?? error.details.column });
  });

  test.each([
    ["SELECT error('mine')", "mine"],
    ["SELECT error(ms) FROM t WHERE n = 2", "abc"],
    ["SELECT 9223372036854775807 + n FROM t", "Overflow in addition"],
    ["SELECT sqrt(n - 10) FROM t", "square root of a negative number"],
    ["SELECT make_date(2024, 13, n::INT) FROM t", "Date out of range"],
    ["SELECT (SELECT n FROM t)", "More than one row"],
    ["SELECT json_extract('{', '$')", "Malformed JSON"],
    ["SELECT regexp_matches(ms, '(') FROM t", "missing )"],
    ["SELECT date_trunc(ms, DATE '2024-01-01') FROM t", "not recognized"],
    ["SELECT 'x'::INTEGER", "Could not convert string 'x'"],
    ["SELECT error('IO Error: /etc/passwd')", "IO Error"],
  ])("%s is the query's own failure", async (sql, message) => {
    const pids = harness.pool.pids();
    const error = await failure(sql);
    expect(error).toMatchObject({ code: "execution_error", status: 400 });
    expect(error.message).toContain(message);
    expect(error.message).not.toContain("SET ");
    // It cost nobody a process.
    expect(await harness.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
    expect(harness.pool.pids()).toEqual(pids);
  });
});

test("an extent that cannot be read is no fault of the query", async () => {
  const { writeFileSync } = await import("node:fs");
  const columns = [
    { name: "at", type: { kind: "timestamp" } },
    { name: "n", type: { kind: "long" } },
  ] as const;
  for (const format of ["tlm", "parquet"] as const) {
    await harness.addTable("default", `bad_${format}`, columns, [{ format, columns, rows: [{ at: 1n, n: 1n }] }]);
    writeFileSync(harness.path(`default/bad_${format}/0.${format}`), Buffer.alloc(3_000, "x"));
    expect(await failure(`SELECT sum(n) FROM bad_${format}`)).toMatchObject({ code: "query_failed", status: 500 });
  }
});

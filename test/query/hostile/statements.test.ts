import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineError } from "../../../src/core/errors.ts";
import { caller, createHostileHarness, REFUSALS } from "./hostile.test-kit.ts";
import { HOSTILE } from "./statements.test-kit.ts";
import type { QueryHarness } from "../../../src/query/query.test-kit.ts";

let harness: QueryHarness;

beforeAll(async () => {
  harness = await createHostileHarness();
});

afterAll(() => harness.close());

describe.each(Object.entries(HOSTILE))("refused: %s", (_group, statements) => {
  test.each(statements)("%s", async (sql) => {
    const error = await harness.text(sql, { caller }).then(
      (answer) => ({ code: `answered: ${answer}`, message: "" }),
      (thrown: EngineError) => thrown,
    );
    expect(REFUSALS, `${error.code}: ${error.message}`).toContain(error.code);
    expect(error.message).not.toMatch(/root:|engine_row|\/tmp\/engine/);
  });
});

describe("refusals", () => {
  test("cost none of the processes that parsed them, and change nothing", async () => {
    const before = harness.pool.pids();
    for (const sql of Object.values(HOSTILE).flat()) await harness.text(sql, { caller }).catch(() => {});
    expect(harness.pool.pids()).toEqual(before);
    expect(await harness.rows("SELECT count(*) AS n FROM logs")).toEqual([{ n: 1 }]);
    expect(await harness.rows("SHOW TABLES")).toEqual([{ name: "logs" }]);
  });

  test("are at least 150", () => {
    const statements = Object.values(HOSTILE).flat();
    expect(new Set(statements).size).toBe(statements.length);
    expect(statements.length).toBeGreaterThan(300);
  });

  test("a CTE may have the name of a system table, or of the table it reads", async () => {
    expect(await harness.rows("WITH sqlite_master AS (SELECT 1 AS a) FROM sqlite_master")).toEqual([{ a: 1 }]);
    expect(await harness.rows("WITH logs AS (SELECT label FROM logs) FROM logs")).toEqual([{ label: "/etc/passwd" }]);
  });
});

import { drawnSeed } from "../../../src/core/drawn-seed.test-kit.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineError } from "../../../src/core/errors.ts";
import type { QueryHarness } from "../../../src/query/query.test-kit.ts";
import { makeCorpus } from "./corpus/corpus.test-kit.ts";
import { caller, createHostileHarness, REFUSALS } from "./hostile.test-kit.ts";
import { HOSTILE } from "./statements.test-kit.ts";

/** Filters of live tails are conditions in a query of ours: what no query may do, none of them does either. */

let harness: QueryHarness;

beforeAll(async () => {
  harness = await createHostileHarness();
});
afterAll(() => harness.close());

async function outcomeOf(text: string, more: readonly string[] = []): Promise<{ code: string; message: string }> {
  const { signal } = new AbortController();
  const selection = { table: "logs", rows: "tailed", more, limit: 10 } as const;
  const request = { caller, database: "default", text, requestId: "test", signal };
  try {
    const { rows } = await harness.service.run({
      ...request,
      tailing: { selection, tableId: 1, extents: [], from: 0 },
    });
    return { code: "answered", message: `${rows} rows` };
  } catch (error) {
    return error as EngineError;
  }
}

/** A statement in the ways in which it may come as a condition, or out of the one that it is put into. */
const framesOf = (sql: string): string[] => [sql, `label IN (${sql})`, `true) UNION ALL (${sql}`];

describe.each(Object.entries(HOSTILE))("refused: %s", (_group, statements) => {
  test.each(statements)("%s", async (sql) => {
    for (const text of framesOf(sql)) {
      const { code, message } = await outcomeOf(text);
      expect({ text, code: REFUSALS.includes(code) ? "refused" : code }).toEqual({ text, code: "refused" });
      expect(message).not.toMatch(/root:|engine_row|\/tmp\/engine/);
    }
  });
});

test("a condition after the first passes the same gate", async () => {
  expect(await outcomeOf("true", ["label = 'a'"])).toMatchObject({ code: "answered" });
  for (const text of [
    "true) UNION ALL (SELECT 1 FROM other.secret",
    "label IN (SELECT label FROM other.secret)",
    "read_text('/etc/passwd') = label",
    "true); SELECT 1; --",
    "",
    "true /*",
  ]) {
    expect(REFUSALS).toContain((await outcomeOf("true", [text])).code);
  }
});

test.each([
  "engine_condition_1",
  "engine_condition_0",
  `"${"place".padEnd(256, "_")}" > 1 AND missing`,
  "\0",
  "$1",
  "?",
])("%j is refused, and is no way to another condition or column of ours", async (text) => {
  expect(REFUSALS).toContain((await outcomeOf(text, ["true"])).code);
});

test("statements of the corpus are refused as conditions", { timeout: 120_000 }, async () => {
  const seed = drawnSeed();
  const root = "/srv/engine/data";
  const target = {
    root,
    folder: `${root}/theirs`,
    ownFolder: `${root}/mine`,
    tlm: `${root}/theirs/logs/1.tlm`,
    parquet: `${root}/theirs/logs/2.parquet`,
    catalog: "/srv/engine/catalog.db",
  };
  const taken: string[] = [];
  for (const { sql } of makeCorpus({ seed, count: 2_400, target }).slice(0, 100)) {
    for (const text of [sql, `(${sql})`]) {
      const { code } = await outcomeOf(text);
      if (!REFUSALS.includes(code)) taken.push(`${code}: ${text}`);
    }
  }
  expect({ seed, taken }).toEqual({ seed, taken: [] });
});

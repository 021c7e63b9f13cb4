import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ANONYMOUS } from "../auth/caller.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { systemClock } from "../core/clock.ts";
import type { Permit } from "./budgets/admission.ts";
import { Watchdog } from "./budgets/watchdog.ts";
import { checkIn } from "./check.ts";
import type { CheckRequest } from "./contract/check.ts";
import { converted } from "./conversion.ts";
import { createQueryHarness, type QueryHarness } from "./query.test-kit.ts";
import type { QueryProcess } from "./scan/query-process.ts";
import { inputFolder } from "./scan/process-folders.ts";

let harness: QueryHarness;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-check-test-"));
  mkdirSync(inputFolder(folder));
  harness = createQueryHarness();
  const columns = [{ name: "a", type: { kind: "int" } }] as const;
  for (const database of ["default", "other"]) await harness.addTable(database, "t", columns, []);
});
afterAll(async () => {
  await harness.close();
  rmSync(folder, { recursive: true });
});

const never = new AbortController().signal;
const asked = (text: string, database = "default"): CheckRequest => {
  return { caller: ANONYMOUS, database, language: "sql", requestId: "r", text, signal: never };
};

test("each table is said with its database", async () => {
  const { tables } = await harness.service.check(asked("SELECT 1 FROM t, other.t AS o"));
  expect(tables.map(({ database, table }) => [database, table])).toEqual([
    ["default", "t"],
    ["other", "t"],
  ]);
  const elsewhere = await harness.service.check(asked("FROM t", "other"));
  expect(elsewhere.tables).toMatchObject([{ database: "other", table: "t" }]);
});

test("the database that is meant without a name is checked before its first row, however it is spelled", async () => {
  const empty = createQueryHarness();
  Object.assign(empty.catalog, { database: () => Promise.resolve(undefined) });
  try {
    for (const database of ["default", "DEFAULT"]) {
      const { diagnostics } = await empty.service.check(asked("SELECT name FROM system.tables", database));
      expect([database, diagnostics]).toEqual([database, []]);
    }
    const refused = empty.service.check(asked("SELECT name FROM system.tables", "nosuch"));
    await expect(refused).rejects.toMatchObject({ code: "database_not_found" });
  } finally {
    await empty.close();
  }
});

test("a process that answers out of turn fails the query, not the server", async () => {
  const ask = () => Promise.resolve({ kind: "dropped" });
  const child = { folder, ask, alive: true, isCancelled: false } as unknown as QueryProcess;
  const budget = { wallMs: 1_000, memoryBytes: 1e9, tempBytes: 1e9, objectStoreBytes: 1e9 };
  const checked = checkIn(child, asked("SELECT 1"), undefined, {
    catalog: {} as Catalog,
    clock: systemClock,
    watchdog: new Watchdog({ clock: systemClock }),
    permit: {} as Permit,
    budget,
    stop: never,
  });
  const out = { code: "query_failed", message: "the query process answered dropped out of turn" };
  await expect(checked).rejects.toMatchObject(out);
  const rows = { columns: [], paths: [], rows: 0 };
  const conversion = {
    rows,
    format: "ndjson",
    caller: ANONYMOUS,
    database: "default",
    budget: {},
    signal: never,
  } as const;
  await expect(converted(child, conversion, budget)).rejects.toMatchObject(out);
});

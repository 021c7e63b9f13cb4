import { afterAll, beforeAll, expect, test } from "vitest";
import { loadDuckDb, runSql } from "../../../../src/io/duckdb/duckdb.ts";
import { createQueryHarness, type QueryHarness } from "../../../../src/query/query.test-kit.ts";
import { FRAMES, framed } from "./frames.test-kit.ts";
import { SEEDS, type Seed } from "./seeds.test-kit.ts";
import { parseTemplate, render } from "./template.test-kit.ts";

let harness: QueryHarness;

const COLUMNS = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "label", type: { kind: "string" } },
  { name: "body", type: { kind: "string" } },
  { name: "props", type: { kind: "dynamic" } },
] as const;
const USERS = [COLUMNS[0], COLUMNS[1], { name: "name", type: { kind: "string" } }] as const;

beforeAll(async () => {
  harness = createQueryHarness();
  const rows = [{ at: 1_700_000_000_000_000_000n, label: "x", body: "a body", props: null, name: "a name" }];
  const extent = { format: "tlm", columns: COLUMNS, rows } as const;
  await harness.addTable("mine", "logs", COLUMNS, [extent, { ...extent, format: "parquet", snapshot: 2 }]);
  await harness.addTable("mine", "users", USERS, [{ format: "tlm", columns: USERS, rows }]);
});
afterAll(() => harness.close());

test("there is a seed for every form of the grammar", () => {
  expect(SEEDS.length).toBeGreaterThanOrEqual(60);
  expect(new Set(SEEDS.map(({ template }) => template)).size).toBe(SEEDS.length);
});

/** How names resolve is DuckDB's to say. */
const isOfScope = ({ thorough }: Seed) => thorough === "names" || thorough === "scopes";

test.each(SEEDS.filter((seed) => !isOfScope(seed)))("valid: $name", async ({ template }) => {
  await expect(harness.text(render(parseTemplate(template)), { database: "mine" })).resolves.toBeDefined();
});

test.each(SEEDS.filter(isOfScope))("valid in DuckDB: $name", async ({ template }) => {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  await duckdb.query(connection, "CREATE TABLE logs AS SELECT 'x' AS label");
  expect(await runSql(duckdb, connection, render(parseTemplate(template)))).toContainEqual(["x"]);
  duckdb.disconnect_sync(connection);
});

test.each(FRAMES.filter(({ takesConstants }) => takesConstants !== true))("valid: a query $name", async (frame) => {
  expect(await harness.text(framed(frame, "SELECT 'x' AS v"), { database: "mine" })).not.toBe("");
});

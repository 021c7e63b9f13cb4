import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../core/clock.ts";
import { lacks } from "../../core/gates.test-kit.ts";
import { MIGRATIONS, migrationsBefore } from "../migrations.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../postgres/postgres.test-kit.ts";
import { Connection } from "../../db/sqlite/connection.ts";
import { migrate } from "../../db/sqlite/migrate.ts";
import { makeFirstSnapshot } from "../sqlite/snapshots.ts";
import { withEmptyPostgres } from "../postgres/transfer-load.ts";
import { loadSqlite, withEmptySqlite } from "../sqlite/transfer-load.ts";
import { comparable, dumpOf, makeFullCatalog, openIn, type Dump } from "./transfer.test-kit.ts";
import { LEFT_OUT, NUMBERS } from "./transfer.ts";

/** Every table that travels. Whoever adds one says here, or in `LEFT_OUT`, what a backup does with it. */
const TRAVEL =
  `agent_run_events agent_runs agent_sessions agent_settings agent_turns api_tokens audit_log columns condemned_extents credentials dashboard_databases dashboard_versions dashboards databases dreaming_changes
   dreaming_runs dreaming_watermarks drops
   ended_sandbox_logs extent_filters extents filedrop_files gone_volumes graphs image_builds input_positions
   input_states job_logs jobs leases ledger machine_images memory_commits memory_counts
   memory_heads memory_records memory_settings memory_vector_heads memory_vectors memory_verdict_days memory_verdicts open_tables
   query_engines query_history row_deletions
   sandbox_events saved_queries sandbox_messages sandbox_nodes sandbox_sessions sandbox_volumes sandboxes schedules
   snapshots staged table_totals tables user_settings users workers workspaces`
    .split(/\s+/)
    .concat(NUMBERS);

let root: string;
let original: Dump;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "engine-transfer-"));
  await mkdir(join(root, "original"));
  await makeFullCatalog(join(root, "original"));
  original = await dumpFrom("original");
});
afterAll(() => rm(root, { recursive: true }));

async function dumpFrom(folder: string): Promise<Dump> {
  const catalog = await openIn(join(root, folder));
  const dump = await dumpOf(catalog);
  await catalog.verify();
  await catalog.close();
  return dump;
}

const load = (folder: string, source: Dump, changed: { signal?: AbortSignal } = {}): Promise<void> =>
  withEmptySqlite(join(root, folder, "catalog.db"), (path) =>
    loadSqlite(path, { source, migrations: MIGRATIONS, clock: systemClock, ...changed }),
  );

/** What a restore changes: leases have ended, and whoever remembers the schema looks again. */
function settled(dump: Dump): Record<string, unknown[]> {
  const tables = comparable(dump);
  const change = (name: string, changed: Record<string, unknown>): void => {
    tables[name] = (tables[name] ?? []).map((row) => Object.assign({}, row, changed));
  };
  change("leases", { expires_at_ms: 0 });
  // SQLite numbers extents by those that are there.
  change(NUMBERS, { schema_generation: 0, last_seq: 0 });
  return tables;
}

test("every table travels, or is left out for a reason", async () => {
  expect(original.tables.map(({ name }) => name).toSorted()).toEqual(TRAVEL.toSorted());
  for (const { name } of original.tables)
    expect({ [name]: original.byTable.get(name)?.rows.length }).not.toEqual({ [name]: 0 });
  expect(TRAVEL.filter((name) => Object.hasOwn(LEFT_OUT, name))).toEqual([]);
});

test("SQLite to SQLite: all rows, and the catalog is sound", async () => {
  await load("copy", original);
  expect(settled(await dumpFrom("copy"))).toEqual(settled(original));
});

test("new writes go on after what was restored", async () => {
  await load("goes-on", original);
  const catalog = await openIn(join(root, "goes-on"));
  const known = (await catalog.allTables()).map(({ id }) => id);
  const { table } = await catalog.createTable({ database: "default", name: "later", columns: [] as never });
  // The table with the largest id was dropped, and its id is not given again.
  expect(table.id).toBeGreaterThan(Math.max(...known) + 1);
  const head = await catalog.head();
  expect(head.id).toBe(original.byTable.get("snapshots")?.rows.at(-1)?.[0]);
  await catalog.close();
});

test("nothing is loaded onto data, nor when it is interrupted; afterwards it can be", async () => {
  await load("once", original);
  await expect(load("once", original)).rejects.toThrow(/once\/catalog\.db is not empty: its table \w+ has rows/);
  await expect(load("stopped", original, { signal: AbortSignal.abort(new Error("stop")) })).rejects.toThrow("stop");
  expect(existsSync(join(root, "stopped/catalog.db.restoring"))).toBe(false);
  await load("stopped", original);
  expect(settled(await dumpFrom("stopped"))).toEqual(settled(original));
});

test("a backup of a newer program is refused, and one that was tampered with", async () => {
  const newer = { ...original, schema: { sqlite: MIGRATIONS.length + 1, postgres: 999 } };
  await expect(load("newer", newer)).rejects.toThrow(/of schema \d+; this program knows \d+: restore it with a newer/);
  const strange = [
    { name: 'users" (id) SELECT 1; --', columns: [] },
    { name: "sqlite_schema", columns: [{ name: "sql", type: "text" as const }] },
    { name: "users", columns: [{ name: 'id") SELECT 1; --', type: "text" as const }] },
  ];
  for (const table of strange) {
    const source = { ...original, tables: [...original.tables.filter(({ name }) => name === NUMBERS), table] };
    await expect(load("strange", source)).rejects.toThrow(/which no catalog of that schema has/);
  }
});

test("a backup of an earlier program is loaded at its schema, and then upgraded", async () => {
  // That program had no backups: its catalog is read as it lies there.
  const earlier = migrationsBefore("deletion", "sqlite");
  const connection = new Connection(":memory:", { readOnly: false, busyTimeoutMs: 0 });
  migrate(connection, { path: ":memory:", nowMs: 0, mayUpgrade: true, migrations: earlier, seed: makeFirstSnapshot });
  connection.run("INSERT INTO databases (id, name, folded_name) VALUES (1, 'default', 'default')");
  connection.run(
    "INSERT INTO tables (id, database_id, name, folded_name, schema_version, next_column_id) VALUES (1, 1, 'old', 'old', 1, 1)",
  );
  connection.run("INSERT INTO table_totals VALUES (1, 0, 0, 0)");
  const byTable: Dump["byTable"] = new Map();
  const numbers = {
    last_snapshot: 0,
    oldest_snapshot: 0,
    schema_generation: 1,
    last_seq: 0,
    last_database_id: 1,
    last_table_id: 1,
  };
  byTable.set(NUMBERS, {
    columns: Object.keys(numbers).map((name) => ({ name, type: "int" as const })),
    rows: [Object.values(numbers)],
  });
  for (const name of ["databases", "tables", "table_totals", "snapshots"]) {
    const columns = connection.all("SELECT name, type FROM pragma_table_info(?)", name);
    byTable.set(name, {
      columns: columns.map((one) => ({ name: String(one["name"]), type: one["type"] === "TEXT" ? "text" : "int" })),
      rows: connection.all(`SELECT * FROM ${name}`).map((row) => Object.values(row) as never),
    });
  }
  connection.close();
  const source: Dump = {
    ...original,
    schema: { sqlite: earlier.length, postgres: 0 },
    tables: [...byTable].map(([name, { columns }]) => ({ name, columns })),
    byTable,
    rows: async function* (name) {
      yield byTable.get(name)?.rows ?? [];
    },
  };
  await load("upgraded", source);
  const upgraded = await openIn(join(root, "upgraded"));
  expect((await upgraded.tables("default")).map(({ name }) => name)).toEqual(["old"]);
  await upgraded.verify();
  await upgraded.close();
});

describe.skipIf(lacks("PostgreSQL"))("PostgreSQL", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop());

  test("SQLite to PostgreSQL and back: all rows, and both catalogs are sound", async () => {
    const url = await server.createDatabase();
    const restore = (source: Dump): Promise<void> =>
      withEmptyPostgres({ url, clock: systemClock }, (loadInto) =>
        loadInto({ source, migrations: MIGRATIONS, clock: systemClock }),
      );
    // An empty catalog may be there.
    await (await openTestCatalog(url)).close();
    await restore(original);
    const catalog = await openTestCatalog(url);
    const there = await dumpOf(catalog);
    await expect(restore(original)).rejects.toThrow(/sessions of this program are connected to the catalog/);
    const { table } = await catalog.createTable({ database: "default", name: "later", columns: [] as never });
    const known = original.byTable.get("tables")?.rows.map(([id]) => Number(id)) ?? [];
    expect(table.id).toBeGreaterThan(Math.max(...known));
    await catalog.close();
    await expect(restore(original)).rejects.toThrow(/is not empty: its table \w+ has rows/);
    await load("back", there);
    const back = await dumpFrom("back");
    expect(settled(there)).toEqual(settled(original));
    expect(settled(back)).toEqual(settled(original));
  });
});

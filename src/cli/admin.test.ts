import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aFlush, column } from "../catalog/contract-fixtures.test-kit.ts";
import { MIGRATIONS } from "../catalog/migrations.test-kit.ts";
import { openSqliteCatalog } from "../catalog/sqlite/sqlite.ts";
import { systemClock } from "../core/clock.ts";
import { silentLog } from "../core/log.ts";
import { runChild, runHere, type Outcome } from "./cli.test-kit.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "engine-admin-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...argv: string[]): Promise<Outcome> => runHere(argv, { env: { ENGINE_HOME: folder } });

async function json(...argv: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await run(...argv, "--json");
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

const createT = (schema: string, ...more: string[]) => run("create-table", "--name", "t", "--schema", schema, ...more);

const AT = { name: "at", type: "timestamp" };

describe("databases and tables", () => {
  test("are created, widened and listed", async () => {
    expect(await run("create-database", "logs")).toEqual({ code: 0, stdout: "database logs created\n", stderr: "" });
    expect(await json("create-database", "LOGS")).toEqual({ database: "logs", created: false });
    const created = await run("create-table", "--db", "logs", "--name", "lines", "--schema", '"my col":string, n:int');
    expect(created).toEqual({
      code: 0,
      stdout: 'table logs.lines created: at:timestamp, "my col":string, n:int\n',
      stderr: "",
    });
    const widened = await run(
      "alter-table",
      "--db",
      "logs",
      "--table",
      "lines",
      "--add-column",
      "e:vector(3)",
      "--add-column",
      "b:bool",
    );
    expect(widened.stdout).toBe('table logs.lines: at:timestamp, "my col":string, n:int, e:vector(3), b:bool\n');
    expect(await json("list-tables", "--db", "logs")).toEqual([
      {
        database: "logs",
        table: "lines",
        columns: [
          AT,
          { name: "my col", type: "string" },
          { name: "n", type: "int" },
          { name: "e", type: "vector(3)" },
          { name: "b", type: "bool" },
        ],
        retention_days: null,
        cluster_by: [],
        infer_types: null,
        open_lag_secs: null,
        rows: 0,
        extents: 0,
        size_bytes: 0,
      },
    ]);
    const listed = await run("list-tables", "--db", "logs");
    expect(listed.stdout).toMatch(
      /^TABLE +ROWS +EXTENTS +BYTES +COLUMNS +RETENTION +CLUSTER BY\n.+\nlines +0 +0 +0 +5 +forever *\n$/,
    );
  });

  test("a table is created again only as it is", async () => {
    expect((await createT("a:int", "--retention-days", "30")).code).toBe(0);
    const again = await createT("A:int");
    expect([again.code, again.stdout]).toEqual([0, "table default.t exists already: at:timestamp, a:int\n"]);
    const other = await createT("a:long");
    expect(other.code).toBe(1);
    expect(other.stderr).toContain("error: table default.t exists already with other columns (at:timestamp, a:int)");
    const kept = await createT("a:int", "--retention-days", "31");
    expect(kept.stderr).toContain("exists already and keeps its rows 30 days");
    expect(await json("list-tables")).toMatchObject([{ retention_days: 30 }]);
  });

  test("the retention of a table is changed and lifted, alone or with its columns", async () => {
    expect((await createT("a:int")).code).toBe(0);
    const alter = (...args: string[]) => run("alter-table", "--table", "t", ...args);
    const set = await alter("--retention-days", "7");
    expect([set.code, set.stdout]).toEqual([0, "table default.t: at:timestamp, a:int; keeps its rows 7 days\n"]);
    expect(await json("list-tables")).toMatchObject([{ retention_days: 7 }]);
    const both = await alter("--add-column", "b:int", "--retention-days", "forever");
    expect(both.stdout).toBe("table default.t: at:timestamp, a:int, b:int; keeps its rows forever\n");
    expect(await json("list-tables")).toMatchObject([{ retention_days: null }]);
    expect((await alter("--retention-days", "8", "--json")).stdout).toContain('"retention_days": 8');
    expect(await json("list-tables")).toMatchObject([{ retention_days: 8 }]);
  });

  test("how soon a table is published is set, changed and left to the server", async () => {
    expect((await createT("a:int", "--open-lag-secs", "300")).code).toBe(0);
    expect(await json("list-tables")).toMatchObject([{ open_lag_secs: 300 }]);
    expect((await createT("a:int", "--open-lag-secs", "300")).code).toBe(0);
    const other = await createT("a:int", "--open-lag-secs", "0");
    expect(other.stderr).toBe(
      "error: table default.t exists already and is published within 300 s; `engine alter-table --open-lag-secs` changes that\n",
    );
    const alter = (...args: string[]) => run("alter-table", "--table", "t", ...args);
    const own = await alter("--open-lag-secs", "0", "--retention-days", "3");
    expect(own.stdout).toMatch(/; keeps its rows 3 days; is published at compaction's own pace\n$/);
    expect(await json("list-tables")).toMatchObject([{ open_lag_secs: 0 }]);
    const lifted = await alter("--open-lag-secs", "server");
    expect(lifted.stdout).toMatch(/; is published as the server's configuration says\n$/);
    expect(await json("list-tables")).toMatchObject([{ open_lag_secs: null }]);
  });

  test("the cluster columns of a table are set, changed and lifted", async () => {
    const schema = 'host:string, "my col":string, none:int, props:dynamic';
    expect((await createT(schema, "--cluster-by", 'HOST,"my col"')).code).toBe(0);
    expect(await json("list-tables")).toMatchObject([{ cluster_by: ["host", "my col"] }]);
    expect((await run("list-tables")).stdout).toContain('forever    host, "my col"\n');
    expect((await createT(schema, "--cluster-by", "host, my col")).code).toBe(0);
    const other = await createT(schema, "--cluster-by", "host");
    expect([other.code, other.stderr]).toEqual([
      1,
      'error: table default.t exists already and is clustered by host, "my col"; `engine alter-table --cluster-by` changes that\n',
    ]);
    const alter = (...args: string[]) => run("alter-table", "--table", "t", ...args);
    const both = await alter("--add-column", "late:int", "--cluster-by", 'late, "none"');
    expect(both.stdout).toMatch(/, late:int; is clustered by late, none\n$/);
    const lifted = await alter("--cluster-by", "none", "--retention-days", "3");
    expect(lifted.stdout).toMatch(/; keeps its rows 3 days; is not clustered\n$/);
    expect(await json("list-tables")).toMatchObject([{ cluster_by: [], retention_days: 3 }]);
    const typo = await alter("--cluster-by", "hots");
    expect([typo.code, typo.stderr]).toEqual([
      1,
      'error: cluster column "hots" is no column of the table; did you mean "host"?\n',
    ]);
    expect((await alter("--cluster-by", "props")).stderr).toContain("dynamic, whose values have no order");
    const created = await run("create-table", "--name", "u", "--schema", "a:int", "--cluster-by", "zone");
    expect([created.code, created.stderr]).toEqual([1, 'error: cluster column "zone" is no column of the table\n']);
  });

  test("a column that is there with another type is a conflict", async () => {
    await run("create-table", "--name", "t", "--schema", "a:int");
    const { code, stderr } = await run("alter-table", "--table", "t", "--add-column", "a:string");
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: .*a.*\n$/);
  });

  test("names that are not there are answered with what was perhaps meant", async () => {
    await run("create-table", "--name", "events", "--schema", "a:int");
    const table = await run("alter-table", "--table", "evnts", "--add-column", "b:int");
    expect([table.code, table.stderr]).toEqual([
      1,
      "error: there is no table evnts in default; did you mean events?\n",
    ]);
    const database = await run("list-tables", "--db", "defualt");
    expect([database.code, database.stderr]).toEqual([
      1,
      "error: there is no database defualt; did you mean default?\n",
    ]);
    const unlike = await run("list-tables", "--db", "q");
    expect(unlike.stderr).toBe("error: there is no database q; `engine create-database NAME` makes one\n");
  });

  test("an empty database says so", async () => {
    await run("create-database", "empty");
    expect((await run("list-tables", "--db", "empty")).stdout).toBe("database empty has no tables\n");
    expect(await json("list-tables", "--db", "empty")).toEqual([]);
  });

  test("may be changed beside a running server, which sees it at once", async () => {
    const path = join(folder, "catalog.db");
    const catalog = await openSqliteCatalog({
      path,
      clock: systemClock,
      log: silentLog,
      migrations: MIGRATIONS,
      mode: "server",
    });
    try {
      await catalog.createTable({
        database: "default",
        name: "t",
        columns: [{ name: "at", type: { kind: "timestamp" } }],
      });
      const env = { ENGINE_HOME: folder };
      const altered = await runChild(["alter-table", "--table", "t", "--add-column", "b:int"], { env });
      expect(altered.code).toBe(0);
      expect((await catalog.table("default", "t"))?.columns.map(({ name }) => name)).toEqual(["at", "b"]);
    } finally {
      await catalog.close();
    }
  });
});

describe("the catalog", () => {
  test("is named by flag, by variable, or lies in the home", async () => {
    await run("create-database", "a", "--catalog-url", `sqlite:${folder}/flag.db`);
    expect(existsSync(join(folder, "flag.db"))).toBe(true);
    const env = { ENGINE_HOME: folder, ENGINE_CATALOG_URL: `sqlite:${folder}/variable.db` };
    await runHere(["create-database", "a"], { env });
    expect(existsSync(join(folder, "variable.db"))).toBe(true);
    expect(existsSync(join(folder, "catalog.db"))).toBe(false);
  });

  test("on a PostgreSQL server that is not there is an error, and its password is not printed", async () => {
    const { code, stderr } = await run("list-tables", "--catalog-url", "postgres://u:hunter2@127.0.0.1:1/d");
    expect(code).toBe(1);
    expect(stderr).toContain("error: the catalog d on 127.0.0.1:1 cannot be opened");
    expect(stderr).not.toContain("hunter2");
  });

  test("is not made by a command that only reads", async () => {
    const { code, stderr } = await run("list-tables");
    expect(code).toBe(1);
    expect(stderr).toContain(
      `error: there is no catalog at ${folder}/catalog.db; start an engine with \`engine serve\``,
    );
    expect(existsSync(join(folder, "catalog.db"))).toBe(false);
  });

  test("that is no catalog is told in one line", async () => {
    writeFileSync(join(folder, "catalog.db"), "this is some other file\n".repeat(100));
    const { code, stderr } = await run("list-tables");
    expect([1, 2]).toContain(code);
    expect(stderr).toMatch(/^error: .*catalog\.db.*\n$/);
  });
});

test.for([
  [["create-table", "--name", "t", "--schema", "at:string"], 'error: --schema: column "at" holds the time'],
  [
    ["create-table", "--name", "t", "--schema", "a:int", "--retention-days", "0"],
    'error: --retention-days is "0"; expected an integer from 1 to 36500',
  ],
  [["create-table", "--name", "t", "--schema", "a:int", "--retention-days", "1.5"], "error: --retention-days is"],
  [
    ["create-table", "--name", "_t", "--schema", "a:int"],
    "error: table name \"_t\" starts with '_', which is reserved",
  ],
  [["alter-table", "--table", "t", "--add-column", "a"], 'error: --add-column: expected name:type at "a"'],
  [
    ["alter-table", "--table", "t", "--add-column", "a:int", "--add-column", "a:int"],
    'error: --add-column: column "a" is there twice',
  ],
  [
    ["alter-table", "--table", "t"],
    "error: nothing to change: give --add-column, --retention-days, --cluster-by, --infer-types or --open-lag-secs",
  ],
  [
    ["alter-table", "--table", "t", "--open-lag-secs", "86401"],
    'error: --open-lag-secs is "86401"; expected an integer from 0 to 86400 or `server`',
  ],
  [
    ["create-table", "--name", "t", "--schema", "a:int", "--open-lag-secs", "server"],
    'error: --open-lag-secs is "server"; expected an integer from 0 to 86400',
  ],
  [["alter-table", "--table", "t", "--cluster-by", "a,"], 'error: --cluster-by: expected a column\'s name at ""'],
  [["alter-table", "--table", "t", "--cluster-by", '"a'], "error: --cluster-by: expected a column's name at "],
  [["create-table", "--name", "t", "--schema", "a:int", "--cluster-by", ""], "error: --cluster-by: expected"],
  [
    ["alter-table", "--table", "t", "--retention-days", "0"],
    'error: --retention-days is "0"; expected an integer from 1 to 36500 or `forever`',
  ],
  [["create-database", "system"], 'error: database name "system" is reserved'],
] as const)("%j is wrong usage", async ([argv, message]) => {
  const { code, stderr } = await run(...argv);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
  expect(existsSync(join(folder, "catalog.db"))).toBe(false);
});

test("a database by a name of DuckDB's own is wrong usage", async () => {
  const { code, stderr } = await run("create-database", "Main");
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('error: database name "Main" is reserved: no new database is'),
  ]);
});

test("positions of inputs are listed, and forgotten on request", async () => {
  await run("create-database", "d");
  expect((await run("ingest", "positions")).stdout).toBe("no input has a position\n");
  const path = join(folder, "catalog.db");
  const options = { path, clock: systemClock, log: silentLog, migrations: MIGRATIONS, mode: "admin" } as const;
  const catalog = await openSqliteCatalog(options);
  const columns = [column("at", "timestamp")];
  const { table } = await catalog.createTable({ database: "d", name: "t", columns });
  const sources = Array.from({ length: 1_001 }, (_, i) => ({ name: `kafka:t:${i}`, to: String(i) }));
  await catalog.commit([aFlush(table, { sources })]);
  await catalog.close();
  const listed = await json("ingest", "positions");
  expect(listed).toHaveLength(1_001);
  expect(listed).toContainEqual({
    source: "kafka:t:7",
    position: "7",
    snapshot_id: "1",
    moved_at: expect.stringMatching(/^20\d\d-/),
  });
  expect((await run("ingest", "positions")).stdout).toMatch(/^SOURCE +POSITION +SNAPSHOT +MOVED AT/);
  expect(await json("ingest", "positions", "--reset", "kafka:t:7")).toEqual({ source: "kafka:t:7", reset: true });
  expect(await json("ingest", "positions")).toHaveLength(1_000);
  const again = await run("ingest", "positions", "--reset", "kafka:t:7");
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("there is no position of kafka:t:7")]);
});

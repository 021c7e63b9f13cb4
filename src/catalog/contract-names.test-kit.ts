import { expect, it } from "vitest";
import { LIMITS } from "../core/limits.ts";
import type { TableRecord } from "./catalog.ts";
import { aFlush, column, failureOf, type Subject } from "./contract-fixtures.test-kit.ts";

export function namesContract({ catalog, table }: Subject): void {
  it("starts empty, at snapshot 0", async () => {
    expect(await catalog().databases()).toEqual([]);
    expect(await catalog().database("default")).toBeUndefined();
    expect((await catalog().head()).id).toBe(0);
  });

  it("creates a database once, whatever the case, and keeps the first spelling", async () => {
    const first = await catalog().createDatabase("Default");
    const second = await catalog().createDatabase("dEFAULT");
    expect(first.created).toBe(true);
    expect(second).toEqual({ database: first.database, created: false });
    expect(await catalog().database("DEFAULT")).toEqual(first.database);
    expect(await catalog().databases()).toEqual([{ id: first.database.id, name: "Default" }]);
  });

  it("creates a table with its database", async () => {
    const columns = [column("at", "timestamp"), { name: "v", type: { kind: "vector", dimensions: 3 } } as const];
    const request = { database: "Logs", name: "Web", columns, retentionDays: 30 };
    const { table, created } = await catalog().createTable(request);
    expect(created).toBe(true);
    expect(table).toMatchObject({ database: "Logs", name: "Web", schemaVersion: 1, retentionDays: 30 });
    expect(table.columns).toEqual(columns.map((spec, i) => Object.assign({ id: i + 1 }, spec)));
    expect(await catalog().table("logs", "wEB")).toEqual(table);
    expect(await catalog().tables("LOGS")).toEqual([table]);
    expect(table.databaseId).toBe((await catalog().database("logs"))?.id);
  });

  it("lists tables with the number of their columns, of one database and of all", async () => {
    const events = await table();
    const columns = [column("at", "timestamp"), column("Host")];
    const settings = { retentionDays: 3, clusterBy: ["Host"] };
    const { table: web } = await catalog().createTable({ database: "Logs", name: "Web", columns, ...settings });
    await catalog().createTable({ database: "logs", name: "api", columns: [] });
    await catalog().setInferTypes(web.id, true);
    const summary = ({ columns: own, ...rest }: TableRecord) => ({ ...rest, columnCount: own.length });
    expect(await catalog().tableSummaries()).toEqual([events, ...(await catalog().tables("logs"))].map(summary));
    expect(await catalog().tableSummaries("LOGS")).toEqual((await catalog().tables("logs")).map(summary));
    for (const unknown of ["nowhere", "a\0b", "\ud800"]) expect(await catalog().tableSummaries(unknown)).toEqual([]);
    await catalog().addColumns(web.id, [column("late"), column("later")]);
    const counts = async () => (await catalog().tableSummaries()).map(({ name, columnCount }) => [name, columnCount]);
    expect(await counts()).toEqual([
      ["events", 2],
      ["api", 0],
      ["Web", 4],
    ]);
    await catalog().dropTable(events.id);
    await catalog().dropDatabase(web.databaseId);
    expect(await counts()).toEqual([]);
  });

  it("returns an existing table as it is", async () => {
    const first = await table();
    const second = await catalog().createTable({ database: "DEFAULT", name: "EVENTS", columns: [column("x")] });
    expect(second).toEqual({ table: first, created: false });
    expect(second.table).not.toHaveProperty("retentionDays");
  });

  it("tells a query at once what it reads: the head, and tables by name", async () => {
    expect(await catalog().resolve("default", ["events"])).toBeUndefined();
    const events = await table();
    const { table: other } = await catalog().createTable({
      database: "DEFAULT",
      name: "Other",
      columns: [column("x")],
    });
    await catalog().createTable({ database: "elsewhere", name: "hidden", columns: [] });
    const database = { id: events.databaseId, name: "default" };
    const names = ["OTHER", "hidden", "events", "a\0b", "\ud800", "other", "", 'events"]'];
    const tables = [other, undefined, events, undefined, undefined, other, undefined, undefined];
    const found = await catalog().resolve("Default", names);
    expect(found).toEqual({ database, head: await catalog().head(), tables });
    for (const unknown of ["nowhere", "", "a\0b"]) expect(await catalog().resolve(unknown, names)).toBeUndefined();
    // What is acknowledged is seen by whoever asks next.
    const flush = aFlush(events, { newColumns: [column("late")] });
    await catalog().commit([flush]);
    const after = await catalog().resolve("default", ["events"]);
    expect(after?.head.id).toBe(1);
    expect(after?.tables[0]?.columns.map(({ name }) => name)).toEqual(["at", "body", "late"]);
    expect(await catalog().resolve("default", [])).toEqual({ database, head: await catalog().head(), tables: [] });
  });

  it("knows nothing of what does not exist", async () => {
    await table();
    expect(await catalog().table("default", "other")).toBeUndefined();
    expect(await catalog().table("other", "events")).toBeUndefined();
    expect(await catalog().tables("other")).toEqual([]);
    expect(await catalog().tableStats(4711)).toEqual({ rows: 0, extents: 0, sizeBytes: 0 });
  });

  it("makes one table of many creations at once", async () => {
    const request = { database: "d", name: "t", columns: [column("at", "timestamp")] };
    const all = await Promise.all(Array.from({ length: 20 }, () => catalog().createTable(request)));
    expect(all.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(all.map(({ table }) => table.id)).size).toBe(1);
  });

  it("refuses names outside the alphabet, and creates nothing of them", async () => {
    for (const bad of ["", "system", "_x", "a/b", "..", 'a"b', "a\0b", "é", "a".repeat(129)]) {
      expect([bad, await failureOf(catalog().createDatabase(bad))]).toEqual([bad, "invalid_name"]);
      const inside = catalog().createTable({ database: "d", name: bad, columns: [] });
      expect([bad, await failureOf(inside)]).toEqual([bad, "invalid_name"]);
    }
    expect(await catalog().databases()).toEqual([]);
  });

  it("makes no database whose name means something to DuckDB, and keeps those that are there", async () => {
    const names = [
      "main",
      "MAIN",
      "memory",
      "temp",
      "Information_Schema",
      "pg_catalog",
      "duckdb_x",
      "Engine_a",
      "sqlite_x",
    ];
    for (const name of names) {
      expect([name, await failureOf(catalog().createDatabase(name))]).toEqual([name, "invalid_name"]);
      const inside = catalog().createTable({ database: name, name: "t", columns: [] });
      expect([name, await failureOf(inside)]).toEqual([name, "invalid_name"]);
    }
    expect(await catalog().databases()).toEqual([]);
    for (const name of ["default", "mains", "my_main", "temporary", "pg", "engine", "duckdb", "memory-2"]) {
      expect([name, (await catalog().createDatabase(name)).created]).toEqual([name, true]);
    }
    const columns = [column("at", "timestamp")];
    const { table } = await catalog().createTable({ database: "Main", name: "t", columns, wasThere: true });
    expect((await catalog().createDatabase("main")).created).toBe(false);
    expect((await catalog().createTable({ database: "main", name: "u", columns })).created).toBe(true);
    await catalog().commit([aFlush(table)]);
    expect(await catalog().resolve("main", ["t"])).toMatchObject({ database: { name: "Main" }, head: { id: 1 } });
  });

  it("refuses a retention that is no whole number of days", async () => {
    for (const retentionDays of [0, -1, 1.5, Number.NaN, 1e9]) {
      const creating = catalog().createTable({ database: "d", name: "t", columns: [], retentionDays });
      expect([`${retentionDays}`, await failureOf(creating)]).toEqual([`${retentionDays}`, "invalid_parameter"]);
    }
  });

  it("clusters a table by columns that it is created with, in the spelling of the table", async () => {
    const columns = [column("at", "timestamp"), column("Host"), column("level", "int")];
    const request = { database: "d", name: "t", columns, clusterBy: ["LEVEL", "host"] };
    const { table: created } = await catalog().createTable(request);
    expect(created.clusterBy).toEqual(["level", "Host"]);
    expect(await catalog().table("d", "t")).toEqual(created);
    expect(await catalog().allTables()).toEqual([created]);
    // What exists is returned as it is, whatever is asked for.
    const again = await catalog().createTable({ ...request, clusterBy: ["nothing"] });
    expect(again).toEqual({ table: created, created: false });
    const refused = catalog().createTable({ database: "d", name: "u", columns, clusterBy: ["hosts"] });
    await expect(refused).rejects.toMatchObject({
      code: "invalid_parameter",
      message: expect.stringMatching(/"Host"/) as string,
    });
    expect((await table()).clusterBy).toEqual([]);
    expect(await catalog().table("d", "u")).toBeUndefined();
  });

  it("moves the schema's generation with every database, table and column, and with nothing else", async () => {
    const seen: number[] = [await catalog().schemaGeneration()];
    const note = async () => void seen.push(await catalog().schemaGeneration());
    await catalog().createDatabase("d");
    await note();
    const events = await table();
    await note();
    await catalog().addColumns(events.id, [column("c")]);
    await note();
    expect(new Set(seen).size).toBe(4);
    await catalog().createDatabase("d");
    await table();
    await catalog().addColumns(events.id, [column("c")]);
    await catalog().commit([aFlush(events)]);
    expect(await catalog().schemaGeneration()).toBe(seen.at(-1));
    await catalog().commit([aFlush(events, { newColumns: [column("found")] })]);
    expect(seen).not.toContain(await catalog().schemaGeneration());
  });
}

export function columnsContract({ catalog, table }: Subject): void {
  it("adds columns under new ids, once", async () => {
    const before = await table();
    const after = await catalog().addColumns(before.id, [column("a"), column("b", "long")]);
    expect(after.schemaVersion).toBe(before.schemaVersion + 1);
    expect(after.columns.map(({ id, name }) => [id, name])).toEqual([
      [1, "at"],
      [2, "body"],
      [3, "a"],
      [4, "b"],
    ]);
    expect(await catalog().addColumns(before.id, [column("A"), column("B", "long")])).toEqual(after);
    expect(await catalog().table("default", "events")).toEqual(after);
  });

  it("adds none when one of them contradicts the table", async () => {
    const before = await table();
    const adding = catalog().addColumns(before.id, [column("fresh"), column("BODY", "int")]);
    await expect(adding).rejects.toMatchObject({ code: "conflict" });
    expect(await catalog().table("default", "events")).toEqual(before);
  });

  it("keeps names as they are: quotes, spaces, any script, 255 bytes", async () => {
    const names = ["__proto__", "q\"uo'te", " ", "\u{1f600}", "é", "É", "ß", "a".repeat(255), "\u0080", "\u2028"];
    const { table } = await catalog().createTable({ database: "d", name: "t", columns: names.map((n) => column(n)) });
    expect(table.columns.map(({ name }) => name)).toEqual(names);
    expect(await catalog().table("d", "t")).toEqual(table);
  });

  it("refuses column names that are empty, too long, hold control characters or half a character", async () => {
    const before = await table();
    for (const bad of ["", "a\0b", "a\nb", "\u007f", "\ud800", "é".repeat(128)]) {
      const adding = catalog().addColumns(before.id, [column("fine"), column(bad)]);
      expect([bad, await failureOf(adding)]).toEqual([bad, "invalid_name"]);
      const creating = catalog().createTable({ database: "d", name: "t", columns: [column(bad)] });
      expect([bad, await failureOf(creating)]).toEqual([bad, "invalid_name"]);
    }
    expect(await catalog().table("default", "events")).toEqual(before);
    expect(await catalog().database("d")).toBeUndefined();
  });

  it("refuses two columns whose names differ by case only", async () => {
    const creating = catalog().createTable({ database: "d", name: "t", columns: [column("Ab"), column("aB")] });
    await expect(creating).rejects.toMatchObject({ code: "conflict" });
    expect(await catalog().table("d", "t")).toBeUndefined();
  });

  it("takes as many columns as the limit says and not one more", async () => {
    const columns = Array.from({ length: LIMITS.columnsPerTable }, (_, i) => column(`c${i}`));
    const over = catalog().createTable({ database: "d", name: "over", columns: [...columns, column("last")] });
    await expect(over).rejects.toMatchObject({ code: "conflict" });
    const { table } = await catalog().createTable({ database: "d", name: "full", columns });
    await expect(catalog().addColumns(table.id, [column("last")])).rejects.toMatchObject({ code: "conflict" });
    expect(await catalog().addColumns(table.id, [column("C7")])).toEqual(table);
    expect(await catalog().table("d", "full")).toEqual(table);
  });

  it("says which table id is unknown", async () => {
    await expect(catalog().addColumns(4711, [column("a")])).rejects.toMatchObject({ code: "table_not_found" });
  });
}

export function clusterColumnsContract({ catalog, table }: Subject): void {
  const COLUMNS = [
    column("at", "timestamp"),
    column("a"),
    column("b", "long"),
    column("c", "bool"),
    column("d", "real"),
    column("e", "timestamp"),
    column("props", "dynamic"),
    { name: "v", type: { kind: "vector", dimensions: 3 } } as const,
  ];

  it("are set, changed and lifted, and seen by everybody", async () => {
    const events = await table(COLUMNS);
    const generation = await catalog().schemaGeneration();
    expect(await catalog().setClusterBy(events.id, ["B", "a"])).toEqual({ ...events, clusterBy: ["b", "a"] });
    expect(await catalog().schemaGeneration()).not.toBe(generation);
    expect(await catalog().table("default", "events")).toEqual({ ...events, clusterBy: ["b", "a"] });
    const widened = await catalog().addColumns(events.id, [column("late")]);
    expect(widened.clusterBy).toEqual(["b", "a"]);
    expect((await catalog().setClusterBy(events.id, ["late", "c", "d", "e"])).clusterBy).toHaveLength(4);
    expect(await catalog().setClusterBy(events.id, [])).toEqual({ ...widened, clusterBy: [] });
    expect(await failureOf(catalog().setClusterBy(4711, ["a"]))).toBe("table_not_found");
  });

  it("are columns of the table with an order, at most four, each once", async () => {
    const events = await table(COLUMNS);
    await catalog().setClusterBy(events.id, ["a"]);
    const refused: [string[], string][] = [
      [["nowhere"], '"nowhere" is no column'],
      [["AT"], 'sorted by "at" first'],
      [["props"], "dynamic, whose values have no order"],
      [["v"], "vector(3), whose values have no order"],
      [["a", "A"], '"A" is there twice'],
      [["a", "b", "c", "d", "e"], "at most 4 cluster columns, here are 5"],
    ];
    for (const [names, message] of refused) {
      const setting = catalog().setClusterBy(events.id, names);
      const expected = { code: "invalid_parameter", message: expect.stringContaining(message) as string };
      await expect(setting).rejects.toMatchObject(expected);
    }
    expect((await catalog().table("default", "events"))?.clusterBy).toEqual(["a"]);
  });
}

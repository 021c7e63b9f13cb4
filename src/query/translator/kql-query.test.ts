import { beforeEach, expect, test } from "vitest";
import { ANONYMOUS } from "../../auth/caller.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { systemClock } from "../../core/clock.ts";
import { silentLog } from "../../core/log.ts";
import type { KqlNames, KqlRequest } from "../kql/contract.ts";
import { KqlQuery } from "./kql-query.ts";
import type { Translator } from "./translator.ts";

/** What the translator is told of the catalog, and how much of that is read for it. */
const TABLES = ["events", "Requests"].map((name) => ({ name, columns: [{ name: "n", type: { kind: "long" } }] }));
let read: string[];
let request: KqlRequest | undefined;

beforeEach(() => {
  read = [];
  request = undefined;
});

const catalog = {
  resolve: async (database: string, names: readonly string[]) => {
    read.push(`resolve ${names.join()}`);
    if (database !== "default") return undefined;
    const tables = names.map((name) => TABLES.find((table) => table.name.toLowerCase() === name.toLowerCase()));
    return { database: { id: 1, name: database }, head: { id: 1, committedAtMs: 0 }, tables };
  },
  tables: async () => {
    read.push("tables");
    return TABLES;
  },
  databases: async () => [{ id: 1, name: "default" }],
} as unknown as Catalog;

async function translated(names: KqlNames, database = "default"): Promise<Pick<KqlRequest, "tables" | "tableNames">> {
  const translator: Pick<Translator, "names" | "translate"> = {
    names: () => Promise.resolve(names),
    translate: (asked) => {
      request = asked;
      return Promise.resolve({ kind: "query", sql: "", columns: [], macros: [] });
    },
  };
  const deps = { translator: translator as Translator, catalog, clock: systemClock, log: silentLog };
  const { signal } = new AbortController();
  const asked = { caller: ANONYMOUS, database, text: "x", requestId: "test", signal } as const;
  await KqlQuery.translate(deps, asked, { signal, memoryBytes: 1 });
  return { tables: request?.tables ?? [], tableNames: request?.tableNames ?? [] };
}

test("the tables that are named, and the names of no others", async () => {
  const { tables, tableNames } = await translated({ tables: ["events"], needsAllTables: false });
  expect([tables, tableNames]).toEqual([[TABLES[0]], ["events"]]);
  expect(read).toEqual(["resolve events"]);
});

test("no tables for a text that names none", async () => {
  expect(await translated({ tables: [], needsAllTables: false })).toEqual({ tables: [], tableNames: [] });
  expect(read).toEqual(["resolve "]);
});

test.each([["nothing"], ["requests"]])("all names where %s is no table by that spelling", async (name) => {
  const { tableNames } = await translated({ tables: ["events", name], needsAllTables: false });
  expect(tableNames).toEqual(["events", "Requests"]);
  expect(read).toEqual([`resolve events,${name}`, "tables"]);
});

test("all tables for a wildcard", async () => {
  const { tables, tableNames } = await translated({ tables: [], needsAllTables: true });
  expect([tables, tableNames]).toEqual([TABLES, ["events", "Requests"]]);
});

test("a database that is not there", async () => {
  await expect(translated({ tables: [], needsAllTables: false }, "defualt")).rejects.toMatchObject({
    code: "database_not_found",
    details: { suggestion: "default" },
  });
  expect(request).toBeUndefined();
});

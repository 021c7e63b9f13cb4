import { expect, test } from "vitest";
import { KqlSchemas } from "./kql-schemas.ts";
import { UNKNOWN_TABLES } from "./kql-protocol.ts";

const table = (name: string, columns = 1) => ({
  name,
  columns: Array.from({ length: columns }, (_, i) => ({ name: `c${i}`, type: "long" })),
});

/** What the worker is told, with the names of tables. */
function told(schemas: KqlSchemas, tables: Parameters<KqlSchemas["prepare"]>[0], text: string) {
  return schemas.prepare(tables, text).messages.map((message) => {
    if (message.kind === "columns") return `columns of ${message.tables.map(({ name }) => name).join(" ")}`;
    return message.kind === "tables" ? `tables ${message.names.join(" ")}` : message.kind;
  });
}

test("columns are told of the tables that a text names, once", () => {
  const schemas = new KqlSchemas();
  const tables = [table("events"), table("odd name"), table("other")];
  expect(told(schemas, tables, "eve")).toEqual(["tables events odd name other"]);
  expect(told(schemas, tables, "events | take 1")).toEqual(["columns of events"]);
  expect(told(schemas, tables, "events | join (['odd name'])")).toEqual(["columns of odd name"]);
  expect(told(schemas, tables, "events | join (['odd name'])")).toEqual([]);
});

test("a wildcard means all tables, unless these are too many to be copied", () => {
  expect(told(new KqlSchemas(), [table("a1"), table("a2")], "union a*")).toEqual(["tables a1 a2", "columns of a1 a2"]);
  expect(told(new KqlSchemas(), [table("a1"), table("a2", 20_000)], "union a*, a1")).toEqual([
    "tables a1 a2",
    "columns of a1",
  ]);
});

test("of schemas the last four are kept; those that are not known have a number of their own", () => {
  const schemas = new KqlSchemas();
  const all = Array.from({ length: 5 }, (_, i) => [table(`t${i}`)]);
  const numbers = all.map((tables) => schemas.prepare(tables, "").schema);
  expect(new Set([...numbers, UNKNOWN_TABLES]).size).toBe(6);
  expect(schemas.prepare(all[4], "").messages).toEqual([]);
  expect(told(schemas, all[0], "")).toEqual(["tables t0", "forget"]);
  expect(schemas.prepare(undefined, "t0")).toEqual({ schema: UNKNOWN_TABLES, messages: [] });
});

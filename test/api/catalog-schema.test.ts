import { afterAll, beforeAll, expect, test } from "vitest";
import { CalledServices, type Json } from "./services.test-kit.ts";

/** The tree of databases and tables, in the parts that a client of many wide tables asks for. */

type Who = "admin" | "limited";
type Tree = { databases: { name: string; tables: { name: string; columns?: unknown[]; column_count?: number }[] }[] };
const PATH = "/v1/catalog/schema";

let services: CalledServices<Who>;
beforeAll(async () => {
  services = await CalledServices.start<Who>([["admin", "admin"]]);
  await services.limit("limited", "read", ["Shop"], "admin");
  for (const [database, table, columns] of [
    ["Shop", "Orders", 3],
    ["Shop", "wide", 60],
    ["hidden", "secret_table", 2],
  ] as const) {
    const row = Object.fromEntries(Array.from({ length: columns }, (_, i) => [`c${i}`, i]));
    const headers = { "X-Database": database, "X-Table": table, "Content-Type": "application/x-ndjson" };
    expect(await services.json("admin", "POST", "/v1/ingest", row, headers)).toMatchObject({ rows_ingested: 1 });
  }
}, 120_000);
afterAll(() => services.close());

const tree = async (who: Who, query = "") =>
  (await services.json(who, "GET", `${PATH}${query}`)) as unknown as Tree & Json;

test("has all columns, none but their number, or those of one table", async () => {
  const whole = await tree("admin");
  const outline = await tree("admin", "?columns=false");
  const names = ({ databases }: Tree) => databases.map(({ name, tables }) => [name, tables.map((table) => table.name)]);
  expect(names(whole)).toEqual([
    ["hidden", ["secret_table"]],
    ["Shop", ["Orders", "wide"]],
  ]);
  expect(names(outline)).toEqual(names(whole));
  const counts = outline.databases.flatMap(({ tables }) => tables.map((table) => table.column_count));
  expect(counts).toEqual(whole.databases.flatMap(({ tables }) => tables.map((table) => table.columns?.length)));
  expect(JSON.stringify(outline)).not.toContain('"columns"');
  const one = await tree("admin", "?database=shop&table=WIDE");
  expect(one.databases).toEqual([{ name: "Shop", tables: [whole.databases[1]?.tables[1]] }]);
  expect((await tree("admin", "?database=SHOP&table=wide&columns=false")).databases).toEqual([
    { name: "Shop", tables: [outline.databases[1]?.tables[1]] },
  ]);
  expect((await tree("admin", "?database=SHOP")).databases).toEqual([whole.databases[1]]);
  expect((await tree("admin", "?database=SHOP&columns=false")).databases).toEqual([outline.databases[1]]);
});

test("what is not there is named, with what may be meant", async () => {
  expect(await tree("admin", "?database=shops")).toMatchObject({
    httpStatus: 404,
    error: { code: "database_not_found", suggestion: "Shop" },
  });
  expect(await tree("admin", "?database=shop&table=order")).toMatchObject({
    httpStatus: 404,
    error: { code: "table_not_found", suggestion: "Orders" },
  });
  expect(await tree("admin", "?table=orders")).toMatchObject({ httpStatus: 400, error: { code: "invalid_parameter" } });
  expect(await tree("admin", "?columns=no")).toMatchObject({ httpStatus: 400, error: { code: "invalid_parameter" } });
  expect(await tree("admin", "?database=a%00b&table=x")).toMatchObject({ httpStatus: 404 });
});

test("a caller of some databases sees no other one, by any way", async () => {
  for (const query of ["", "?columns=false", "?database=Shop", "?database=Shop&table=orders"]) {
    const seen = await tree("limited", query);
    expect([query, seen["httpStatus"], seen.databases.map(({ name }) => name)]).toEqual([query, 200, ["Shop"]]);
  }
  const outlineOf = async (database: string, rest: string) => {
    const answer = await tree("limited", `?database=${database}${rest}`);
    const { error, httpStatus } = answer as unknown as { error: Json; httpStatus: number };
    return [httpStatus, error["code"], String(error["message"]).replaceAll(database, "X"), error["suggestion"]];
  };
  for (const rest of ["", "&table=secret_table", "&table=none", "&columns=false"]) {
    expect(await outlineOf("hidden", rest)).toEqual(await outlineOf("absent", rest));
  }
});

test("an answer that has not changed is not sent again", async () => {
  for (const query of ["", "?columns=false", "?database=shop", "?database=shop&table=wide"]) {
    const first = await services.send("admin", "GET", `${PATH}${query}`);
    const tag = first.headers.get("etag") ?? "";
    expect([query, tag]).toEqual([query, expect.stringMatching(/^W\/"[\w-]{22}"$/)]);
    expect(first.headers.get("cache-control")).toBe("private, no-cache");
    await first.text();
    const headers = { "If-None-Match": `"other", ${tag}` };
    const again = await services.send("admin", "GET", `${PATH}${query}`, undefined, headers);
    expect([query, again.status, again.headers.get("etag"), await again.text()]).toEqual([query, 304, tag, ""]);
    // What one sees is not what another sees.
    const other = await services.send("limited", "GET", `${PATH}${query}`, undefined, headers);
    expect([query, other.status]).toEqual([query, query.includes("shop") ? 304 : 200]);
    await other.text();
  }
  const bad = await services.send("admin", "GET", PATH, undefined, { "If-None-Match": "bare" });
  expect([bad.status, await bad.text()]).toEqual([400, expect.stringContaining("invalid_header")]);
});

test("every change of a table changes the tags of what shows it, at once", async () => {
  const tagOf = async (query: string) => {
    const answer = await services.send("admin", "GET", `${PATH}${query}`);
    await answer.text();
    return answer.headers.get("etag");
  };
  const shown = ["", "?columns=false", "?database=shop", "?database=shop&table=orders"];
  const apart = "?database=shop&table=wide";
  const tags = async () => await Promise.all(shown.map(tagOf));
  const [before, other] = [await tags(), await tagOf(apart)];
  const body = '{"a_new_column":1}\n';
  const headers = { "X-Database": "shop", "X-Table": "orders", "Content-Type": "application/x-ndjson" };
  const sent = await services.send("admin", "POST", "/v1/ingest", body, headers);
  expect([sent.status, await sent.text()]).toEqual([200, expect.stringContaining("snapshot_id")]);
  const after = await tags();
  for (const [i, tag] of after.entries()) expect([shown[i], tag]).not.toEqual([shown[i], before[i]]);
  expect(await tagOf(apart)).toBe(other);
});

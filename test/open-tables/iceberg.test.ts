import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { CalledServices, type Json } from "../api/services.test-kit.ts";
import { ndjson } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { withCatalog } from "../../bench/support/catalog.ts";
import type { ScalarTypeName } from "../../src/format/types.ts";

/** The catalog protocol of Iceberg as any client of HTTP sees it: one server with all roles. */

type Who = "admin" | "writer" | "reader" | "limited";
type Loaded = { "metadata-location": string; metadata: Metadata; config: Record<string, string> };
type Metadata = {
  "table-uuid": string;
  "current-snapshot-id": number;
  "current-schema-id": number;
  "last-column-id": number;
  schemas: { "schema-id": number; fields: { id: number; name: string; type: unknown }[] }[];
  snapshots: { "snapshot-id": number; "schema-id": number; "manifest-list": string; summary: Record<string, string> }[];
  properties: Record<string, string>;
};

let services: CalledServices<Who>;

beforeAll(async () => {
  const callers = [
    ["admin", "admin"],
    ["writer", "write"],
    ["reader", "read"],
  ] as const;
  const env = {
    ENGINE_WRITE_FORMAT: "parquet",
    ENGINE_COMPACTION_POLL_SECS: "1",
    ENGINE_COMPACTION_MIN_EXTENTS: "4",
  };
  services = await CalledServices.start<Who>(callers, env, makeTables);
  await services.limit("limited", "read", ["seen"], "admin");
}, 120_000);
afterAll(() => services.close());

const column = (name: string, kind: ScalarTypeName) => ({ name, type: { kind } });
const COLUMNS = [column("at", "timestamp"), column("n", "long"), column("body", "string"), column("props", "dynamic")];

/** What the tests begin with: tables of those columns, without rows. */
const TABLES = [
  "seen.t",
  "hidden.t",
  "pages.c",
  "pages.a",
  "pages.b",
  "fresh.t",
  "s.t",
  "m.t",
  "again.t",
  "tag.t",
  "all.t",
];

async function makeTables(home: string): Promise<void> {
  await withCatalog(home, async (catalog) => {
    for (const table of TABLES) {
      const [database = "", name = ""] = table.split(".");
      await catalog.createTable({ database, name, columns: COLUMNS });
    }
  });
}

async function ingest(database: string, table: string, rows: readonly Json[]): Promise<number> {
  const headers = { "X-Database": database, "X-Table": table, "Content-Type": "application/x-ndjson" };
  const answer = await services.send("writer", "POST", "/v1/ingest", ndjson(rows), headers);
  expect(answer.status).toBe(200);
  return Number(((await answer.json()) as Json)["snapshot_id"]);
}

const get = (who: Who, path: string, headers: Record<string, string> = {}) =>
  services.send(who, "GET", `/iceberg/v1/${path}`, undefined, headers);
const getJson = async (path: string, who: Who = "reader"): Promise<Json> =>
  (await (await get(who, path)).json()) as Json;
const load = async (path: string, query = ""): Promise<Loaded> =>
  (await getJson(`namespaces/${path}${query}`)) as unknown as Loaded;
const summaryOf = ({ metadata }: Loaded) => metadata.snapshots.at(-1)?.summary;

test("the configuration names what can be asked for", async () => {
  const { endpoints, defaults } = await getJson("config?warehouse=any");
  expect(endpoints).toContain("GET /v1/{prefix}/namespaces/{namespace}/tables/{table}");
  expect(defaults).toEqual({});
});

test("databases are namespaces, and those of a namespace are none", async () => {
  expect(await getJson("namespaces?pageSize=1")).toMatchObject({ namespaces: [[expect.any(String)]] });
  expect((await getJson("namespaces"))["namespaces"]).toEqual(expect.arrayContaining([["hidden"], ["seen"]]));
  expect(await getJson("namespaces?parent=seen")).toEqual({ namespaces: [], "next-page-token": null });
  expect((await get("reader", "namespaces?parent=none")).status).toBe(404);
  expect(await getJson("namespaces/SEEN")).toEqual({ namespace: ["seen"], properties: {} });
  const head = await services.send("reader", "HEAD", "/iceberg/v1/namespaces/seen");
  expect([head.status, await head.text()]).toEqual([204, ""]);
});

test("names come in pages, also when a client asks for no size", async () => {
  const names: string[] = [];
  let token: string | null = "";
  for (let page = 0; token !== null && page < 5; page++) {
    const answer = await getJson(`namespaces/pages/tables?pageSize=2&pageToken=${token}`);
    names.push(...(answer["identifiers"] as { name: string }[]).map(({ name }) => name));
    token = answer["next-page-token"] as string | null;
  }
  expect(names).toEqual(["a", "b", "c"]);
  expect(await getJson("namespaces/pages/tables")).toMatchObject({ "next-page-token": null });
  for (const bad of ["pageToken=%00", "pageToken=YQ%3D%3D", "pageSize=0", "pageSize=x"]) {
    const answer = await get("reader", `namespaces/pages/tables?${bad}`);
    expect([bad, answer.status]).toEqual([bad, 400]);
    expect(await answer.json()).toMatchObject({ error: { code: 400, type: "BadRequestException" } });
  }
});

test("what a token is not for is not there", async () => {
  expect(await getJson("namespaces", "limited")).toEqual({ namespaces: [["seen"]], "next-page-token": null });
  expect((await get("limited", "namespaces/seen/tables/t")).status).toBe(200);
  for (const [path, type] of [
    ["namespaces/hidden", "NoSuchNamespaceException"],
    ["namespaces/none", "NoSuchNamespaceException"],
    ["namespaces/hidden/tables", "NoSuchNamespaceException"],
    ["namespaces/hidden/tables/t", "NoSuchTableException"],
    ["namespaces/seen/tables/none", "NoSuchTableException"],
    ["namespaces/seen%1Fdeeper/tables/t", "NoSuchTableException"],
    ["namespaces/seen/tables/%00", "NoSuchTableException"],
    ["namespaces/..%2Fseen/tables/t", "NoSuchTableException"],
  ] as const) {
    const answer = await get("limited", path);
    expect([path, answer.status]).toEqual([path, 404]);
    expect(await answer.json()).toMatchObject({ error: { code: 404, type } });
  }
  // Word for word what a name gets that nobody has.
  const hidden = await (await get("limited", "namespaces/hidden/tables/x1")).text();
  const none = await (await get("limited", "namespaces/absent/tables/x1")).text();
  expect(hidden.replace("hidden", "absent")).toBe(none);
});

test("a caller without a token is told so in the protocol's own form", async () => {
  const answer = await fetch(`${services.url}/iceberg/v1/namespaces`);
  expect(answer.status).toBe(401);
  expect(answer.headers.get("www-authenticate")).toContain("Bearer");
  expect(await answer.json()).toMatchObject({ error: { code: 401, type: "NotAuthorizedException" } });
  const token = await fetch(`${services.url}/iceberg/v1/oauth/tokens`, { method: "POST", body: "grant_type=x" });
  expect(token.status).toBe(405);
  expect(await token.text()).toContain("token of the server");
});

test("nothing can be written", async () => {
  const before = await getJson("namespaces");
  for (const [method, path] of [
    ["POST", "namespaces"],
    ["DELETE", "namespaces/seen"],
    ["POST", "namespaces/seen/properties"],
    ["POST", "namespaces/seen/tables"],
    ["POST", "namespaces/seen/register"],
    ["POST", "namespaces/seen/tables/t"],
    ["DELETE", "namespaces/seen/tables/t"],
    ["POST", "tables/rename"],
    ["POST", "transactions/commit"],
    ["POST", "namespaces/seen/views"],
  ] as const) {
    const answer = await services.send("admin", method, `/iceberg/v1/${path}`, method === "POST" ? "{}" : undefined);
    expect([path, answer.status]).toEqual([path, 405]);
    expect(await answer.json()).toMatchObject({ error: { code: 405, type: "UnsupportedOperationException" } });
  }
  expect(await getJson("namespaces")).toEqual(before);
});

test("a table without rows has no snapshot; one whose rows wait says how many, and since when", async () => {
  const empty = await load("fresh/tables/t");
  expect(empty.metadata).toMatchObject({ "current-snapshot-id": -1, snapshots: [], "format-version": 2 });
  // What brings a column is published with its first merge.
  const first = await ingest("fresh", "t", [{ n: 1, more: "a" }]);
  const waiting = await load("fresh/tables/t");
  expect(waiting.metadata["current-snapshot-id"]).toBe(first);
  expect(summaryOf(waiting)).toMatchObject({
    "total-records": "0",
    "engine.pending-rows": "1",
    "engine.pending-since": expect.stringMatching(/^20/) as string,
  });
});

test("snapshots are those of the engine, with the columns of then", async () => {
  const first = await ingest("s", "t", [{ n: 1, body: "a" }, { n: 2 }]);
  const one = await load("s/tables/t");
  expect(one.metadata["current-snapshot-id"]).toBe(first);
  expect(summaryOf(one)).toMatchObject({
    operation: "append",
    "total-data-files": "1",
    "total-records": "2",
    "engine.pending-rows": "0",
  });
  await ingest("s", "t", [{ n: 3, later: 1 }]);
  expect(summaryOf(await load("s/tables/t"))).toMatchObject({ "total-records": "2", "engine.pending-rows": "1" });
  const third = await ingest("s", "t", [{ n: 4, later: 2 }]);
  const three = await load("s/tables/t");
  expect(three.metadata["current-snapshot-id"]).toBe(third);
  expect(summaryOf(three)).toMatchObject({ "total-records": "3", "engine.pending-rows": "1" });
  expect(three.metadata.snapshots.map((snapshot) => snapshot["snapshot-id"])).toEqual([first, third]);
  const namesAt = (snapshot: number) => {
    const schema = three.metadata.snapshots.find((of) => of["snapshot-id"] === snapshot)?.["schema-id"];
    return three.metadata.schemas.find((of) => of["schema-id"] === schema)?.fields.map(({ name }) => name);
  };
  expect(namesAt(first)).not.toContain("later");
  expect(namesAt(third)).toContain("later");
  const { metadata } = await load("s/tables/t", "?snapshots=refs");
  expect(metadata.snapshots.map((snapshot) => snapshot["snapshot-id"])).toEqual([third]);
  expect(metadata["table-uuid"]).toBe(one.metadata["table-uuid"]);
});

test("a merge is a snapshot, and rows that were deleted take the snapshots before along", async () => {
  for (let i = 0; i < 3; i++) await ingest("m", "t", [{ n: i }]);
  const before = await load("m/tables/t");
  expect(before.metadata.snapshots).toHaveLength(1);
  // Earlier ones are listed in the background.
  await eventually(async () => (await load("m/tables/t")).metadata.snapshots.length === 3);
  await ingest("m", "t", [{ n: 3 }]);
  await eventually(async () => summaryOf(await load("m/tables/t"))?.["total-data-files"] === "1");
  const merged = await load("m/tables/t");
  expect(summaryOf(merged)).toMatchObject({ operation: "overwrite", "total-records": "4", "deleted-data-files": "4" });
  const begun = await services.json(
    "admin",
    "POST",
    "/v1/catalog/tables/t/delete",
    { where: "n = 1" },
    { "X-Database": "m" },
  );
  await eventually(async () => {
    const seen = await services.json("admin", "GET", `/v1/catalog/deletions/${String(begun["id"])}`);
    return seen["status"] === "done";
  });
  const after = await load("m/tables/t");
  expect(summaryOf(after)).toMatchObject({ "total-records": "3" });
  expect(after.metadata.snapshots).toHaveLength(1);
}, 60_000);

test("a table that is made anew is another one", async () => {
  const first = await load("again/tables/t");
  await services.json("admin", "DELETE", "/v1/catalog/tables/t", undefined, { "X-Database": "again" });
  expect((await get("reader", "namespaces/again/tables/t")).status).toBe(404);
  await ingest("again", "t", [{ n: 1 }]);
  expect((await load("again/tables/t")).metadata["table-uuid"]).not.toBe(first.metadata["table-uuid"]);
});

test("a table that has not changed is not sent again", async () => {
  await ingest("tag", "t", [{ n: 1 }]);
  const first = await get("reader", "namespaces/tag/tables/t");
  const tag = first.headers.get("etag") ?? "";
  // A proxy that compresses answers makes tags weak.
  for (const known of [tag, `W/${tag}`]) {
    const again = await get("reader", "namespaces/tag/tables/t", { "If-None-Match": known });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  }
  await ingest("tag", "t", [{ n: 2 }]);
  expect((await get("reader", "namespaces/tag/tables/t", { "If-None-Match": tag })).status).toBe(200);
});

test("readers that refuse an encoding when they read vectorized are told not to; no one else", async () => {
  const propertiesOf = async (version: string) => {
    const answer = await get("reader", "namespaces/seen/tables/t", { "X-Client-Version": version });
    return ((await answer.json()) as Loaded).metadata.properties;
  };
  const plain = { "read.parquet.vectorization.enabled": "false" };
  expect(await propertiesOf("Apache Iceberg 1.10.1 (commit ccb8bc435062171e64bc8b7e5f56e6aed9c5b934)")).toEqual(plain);
  expect(await propertiesOf("Apache Iceberg 0.14.0")).toEqual(plain);
  expect(await propertiesOf("Apache Iceberg 1.11.0 (commit x)")).toEqual({});
  expect(await propertiesOf("PyIceberg 0.1.0")).toEqual({});
});

test("reports are counted by client and table", async () => {
  const report = (table: string, body: string) =>
    services.send("reader", "POST", `/iceberg/v1/namespaces/seen/tables/${table}/metrics`, body, {
      "Content-Type": "application/json",
      "User-Agent": "PyIceberg/0.12.0",
    });
  expect((await report("t", JSON.stringify({ "report-type": "scan-report", "table-name": "t" }))).status).toBe(204);
  expect((await report("none", JSON.stringify({ "report-type": "scan-report" }))).status).toBe(404);
  expect((await report("t", "{}")).status).toBe(400);
  const metrics = await (await services.send("admin", "GET", "/metrics")).text();
  expect(metrics).toContain('engine_open_tables_reports_total{client="pyiceberg",table="seen.t"} 1');
});

test("the program itself lists files, with the modules that it is built of", async () => {
  const { home, remove } = await temporaryHome();
  const engine = await startEngine({ home, env: { ENGINE_WRITE_FORMAT: "parquet" } });
  try {
    const headers = { "X-Table": "events", "Content-Type": "application/x-ndjson" };
    // What makes a table is published with its first merge.
    for (const body of ["a", "b"]) {
      const stored = await fetch(`${engine.url}/v1/ingest`, { method: "POST", headers, body: ndjson([{ body }]) });
      expect(stored.status).toBe(200);
    }
    const loaded = await fetch(`${engine.url}/iceberg/v1/namespaces/default/tables/events`);
    expect([loaded.status, summaryOf((await loaded.json()) as Loaded)?.["total-records"]]).toEqual([200, "1"]);
  } finally {
    await engine.stop();
    await remove();
  }
});

test("the metadata in the store has the current snapshot, and all of them for ClickHouse, which reads it there", async () => {
  const first = await ingest("all", "t", [{ n: 1 }]);
  await load("all/tables/t");
  const second = await ingest("all", "t", [{ n: 2 }]);
  await eventually(async () => (await load("all/tables/t")).metadata.snapshots.length === 2);
  const storedFor = async (client: string, query = "") => {
    const answer = await get("reader", `namespaces/all/tables/t${query}`, { "User-Agent": client });
    const { "metadata-location": location, metadata } = (await answer.json()) as Loaded;
    const stored = JSON.parse(await readFile(fileURLToPath(location), "utf8")) as Metadata;
    return [stored, metadata].map(({ snapshots }) => snapshots.map((snapshot) => snapshot["snapshot-id"]));
  };
  expect(await storedFor("PyIceberg/0.12.0")).toEqual([[second], [first, second]]);
  expect(await storedFor("ClickHouse/26.9.2.1")).toEqual([
    [first, second],
    [first, second],
  ]);
  expect(await storedFor("ClickHouse/26.9.2.1", "?snapshots=refs")).toEqual([[first, second], [second]]);
  expect(await storedFor("PyIceberg/0.12.0")).toEqual([[second], [first, second]]);
});

test("no field of a file has an id above the last one that a table has assigned", async () => {
  await ingest("all", "t", [{ n: 3 }]);
  const { metadata } = await load("all/tables/t");
  const last = metadata["last-column-id"];
  for (const { id } of metadata.schemas.flatMap(({ fields }) => fields)) expect(last).toBeGreaterThanOrEqual(id);
  // Nanoseconds of times have ids of their own in files, which are no columns.
  expect(last).toBe(2_000_000 + Math.max(...metadata.schemas.flatMap(({ fields }) => fields.map(({ id }) => id))));
});

import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startServices } from "../edge/run.test-kit.ts";
import { loadDuckDb, quoteText, runSql } from "../../src/io/duckdb/duckdb.ts";
import { ndjson } from "../support/client.ts";
import { CalledServices, type Json } from "./services.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

/** Exports, and the verification of what ingest wrote, as clients see them: one server with all roles. */

type Who = "admin" | "reader" | "other" | "limited";

/** Of every type, with what is odd in each. */
const ROWS: readonly Json[] = Array.from({ length: 5_000 }, (_, n) => ({
  at: new Date(1_704_067_200_000 + n * 1_000).toISOString(),
  label: ["alpha", "beta", null, "ünïcödé 🦉"][n % 4],
  body: n % 7 === 0 ? "x".repeat(200) + String(n) : `row ${n} \u0000 "quoted"`,
  props: { n, deep: { list: [n, "x", null] }, ...(n % 2 === 0 ? { odd: true } : {}) },
  extra: n % 3 === 0 ? n / 3 : null,
}));

let services: CalledServices<Who>;

beforeAll(async () => {
  const callers = [
    ["admin", "admin"],
    ["reader", "read"],
    ["other", "read"],
  ] as const;
  services = await CalledServices.start<Who>(callers);
  for (const database of ["a", "b"]) {
    const headers = { "X-Database": database, "X-Table": "events", "Content-Type": "application/x-ndjson" };
    const answer = await services.send("admin", "POST", "/v1/ingest", ndjson(ROWS), headers);
    expect(answer.status).toBe(200);
  }
  await services.limit("limited", "read", ["b"], "admin");
}, 120_000);
afterAll(() => services.close());

const json = (who: Who, method: string, path: string, body?: unknown) => services.json(who, method, path, body);

const begin = (query: string, who: Who = "reader", more: Json = {}) =>
  json(who, "POST", "/v1/exports", { query, database: "a", ...more });

async function finished(path: string, who: Who = "reader"): Promise<Json> {
  let seen: Json = {};
  await eventually(async () => {
    seen = await json(who, "GET", path);
    return ["done", "failed", "cancelled"].includes(String(seen["status"]));
  });
  return seen;
}

async function exported(query: string, who: Who = "reader", more: Json = {}): Promise<Json> {
  const { id, httpStatus } = await begin(query, who, more);
  expect(httpStatus).toBe(202);
  return finished(`/v1/exports/${String(id)}`, who);
}

/** The rows of a Parquet file as text, one a line. */
async function rowsIn(path: string): Promise<unknown[]> {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  const rows = await runSql(
    duckdb,
    connection,
    `SELECT CAST(to_json(r) AS VARCHAR) FROM read_parquet(${quoteText(path)}) AS r`,
  );
  return rows.map(([row]) => row);
}

const codeOf = (body: Json): unknown => (body["error"] as Json | null)?.["code"];
const QUERY = "SELECT * FROM events ORDER BY at";

test("what is exported is what the query answers", async () => {
  const begun = await begin(QUERY);
  expect(begun).toMatchObject({ httpStatus: 202, database: "a", error: null, key: null, download_url: null });
  const path = `/v1/exports/${String(begun["id"])}`;
  const done = await finished(path);
  const key = `engine/_exports/a/${String(done["id"])}/1.parquet`;
  expect(done).toMatchObject({ status: "done", rows: 5_000, key, download_url: `${path}/download` });
  expect(done["columns"]).toEqual(["at", "label", "body", "props", "extra"]);
  expect(Date.parse(String(done["expires_at"])) - Date.parse(String(done["finished_at"]))).toBe(7 * 86_400_000);

  const download = await services.send("reader", "GET", String(done["download_url"]));
  const bytes = Buffer.from(await download.arrayBuffer());
  expect(download.headers.get("content-type")).toBe("application/vnd.apache.parquet");
  expect(download.headers.get("content-length")).toBe(String(done["bytes"]));
  expect(download.headers.get("content-disposition")).toBe(`attachment; filename="${String(done["id"])}.parquet"`);
  expect(bytes.byteLength).toBe(done["bytes"]);
  const answer = await services.send("reader", "POST", "/v1/query", QUERY, {
    "X-Database": "a",
    Accept: "application/vnd.apache.parquet",
  });
  const [ours, theirs] = [join(services.home, "ours.parquet"), join(services.home, "theirs.parquet")];
  await writeFile(ours, bytes);
  await writeFile(theirs, Buffer.from(await answer.arrayBuffer()));
  const rows = await rowsIn(ours);
  expect(rows).toHaveLength(5_000);
  expect(rows).toEqual(await rowsIn(theirs));

  const part = await services.send("reader", "GET", `${path}/download`, undefined, { Range: "bytes=-8" });
  expect([part.status, part.headers.get("content-range")]).toEqual([206, rangeOf(bytes.byteLength, 8)]);
  expect(Buffer.from(await part.arrayBuffer())).toEqual(bytes.subarray(-8));
  const middle = await services.send("reader", "GET", `${path}/download`, undefined, { Range: "bytes=4-7" });
  expect(Buffer.from(await middle.arrayBuffer())).toEqual(bytes.subarray(4, 8));
  for (const Range of ["bytes=0-1,3-4", "bytes=99999999-", "bytes=7-4", "lines=1-2"]) {
    const whole = await services.send("reader", "GET", `${path}/download`, undefined, { Range });
    expect([whole.status, (await whole.arrayBuffer()).byteLength]).toEqual([200, bytes.byteLength]);
  }
});

function rangeOf(sizeBytes: number, lastBytes: number): string {
  return `bytes ${sizeBytes - lastBytes}-${sizeBytes - 1}/${sizeBytes}`;
}

test("the database may come in the header, and the export may be a job of POST /v1/jobs", async () => {
  const body = JSON.stringify({ query: "SELECT count(*) AS n FROM events" });
  const headers = { "X-Database": "B", "Content-Type": "application/json" };
  const begun = (await (await services.send("reader", "POST", "/v1/exports", body, headers)).json()) as Json;
  expect(begun["database"]).toBe("b");
  expect(await finished(`/v1/exports/${String(begun["id"])}`)).toMatchObject({ status: "done", rows: 1 });
  const payload = { query: "SELECT 1 AS one", database: "a" };
  const job = await json("admin", "POST", "/v1/jobs", { kind: "query.export", database: "a", payload });
  const done = await finished(`/v1/jobs/${String(job["job_id"])}`, "admin");
  expect(done).toMatchObject({ status: "done", result: { rows: 1, columns: ["one"] } });
});

describe("refused", () => {
  test("to those who may not see the database, as if there were none", async () => {
    expect(codeOf(await begin(QUERY, "limited"))).toBe("database_not_found");
    expect(codeOf(await begin(QUERY, "reader", { database: "missing" }))).toBe("database_not_found");
    expect(await exported(QUERY, "limited", { database: "b" })).toMatchObject({ status: "done", rows: 5_000 });
    expect(codeOf(await json("limited", "POST", "/v1/exports", {}))).toBe("bad_request_body");
    const payload = { query: QUERY, database: "a" };
    const crossed = await json("admin", "POST", "/v1/jobs", { kind: "query.export", database: "b", payload });
    expect(await finished(`/v1/jobs/${String(crossed["job_id"])}`, "admin")).toMatchObject({ status: "failed" });
  });

  test("to other readers, while those who may write see it", async () => {
    const { id } = await exported("SELECT 1 AS one");
    const path = `/v1/exports/${String(id)}`;
    for (const who of ["other", "limited"] as const) {
      expect(codeOf(await json(who, "GET", path))).toBe("not_found");
      expect(codeOf(await json(who, "GET", `${path}/download`))).toBe("not_found");
      expect(codeOf(await json(who, "DELETE", path))).toBe("not_found");
    }
    expect(await json("admin", "GET", path)).toMatchObject({ status: "done" });
    expect((await services.send("admin", "GET", `${path}/download`)).status).toBe(200);
    const payload = { database: "a", table: "events" };
    const other = await json("admin", "POST", "/v1/jobs", {
      kind: "maintenance.verify_extents",
      database: "a",
      payload,
    });
    expect(codeOf(await json("admin", "GET", `/v1/exports/${String(other["job_id"])}`))).toBe("not_found");
  });

  test("what no query may do fails for good, and says why", async () => {
    const failed = await exported("COPY events TO 'x.parquet'");
    expect(failed).toMatchObject({ status: "failed", key: null, download_url: null });
    expect(failed["error"]).toMatch(/^only queries can be run/);
    const budgets = { max_object_store_bytes: 0 };
    expect((await exported(QUERY, "reader", { budgets }))["error"]).toMatch(/its budget is 0 bytes$/);
    expect(codeOf(await begin("SELECT 1", "reader", { language: "gql" }))).toBe("bad_request_body");
    expect(codeOf(await begin("SELECT 1", "reader", { budgets: { max_memory_bytes: 1 } }))).toBe("bad_request_body");
  });
});

test("one caller may not have any number of exports waiting, and keeps nobody else from theirs", async () => {
  const later = {
    kind: "query.export",
    database: "a",
    payload: { query: "SELECT 1", database: "a" },
    run_after: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const ids = await Promise.all(Array.from({ length: 100 }, () => json("admin", "POST", "/v1/jobs", later)));
  expect(await begin("SELECT 1", "admin")).toMatchObject({ httpStatus: 429, error: { code: "too_many_requests" } });
  expect(await exported("SELECT 1 AS one")).toMatchObject({ status: "done" });
  for (const { job_id: id } of ids) await json("admin", "POST", `/v1/jobs/${String(id)}/cancel`);
  expect(await exported("SELECT 1 AS one", "admin")).toMatchObject({ status: "done" });
});

test("one that is cancelled ends its query, and has no result", async () => {
  const endless = "SELECT count(*) FROM events a, events b, events c, events d";
  const { id } = await begin(endless);
  const path = `/v1/exports/${String(id)}`;
  await eventually(
    async () => ((await json("reader", "GET", path))["progress"] as Json | null)?.["phase"] === "query",
    120_000,
  );
  expect(codeOf(await json("reader", "GET", `${path}/download`))).toBe("not_found");
  expect(await json("reader", "DELETE", path)).toMatchObject({ httpStatus: 200, id });
  expect(await finished(path)).toMatchObject({ status: "cancelled", key: null });
  expect(await json("reader", "DELETE", path)).toMatchObject({ status: "cancelled" });
  expect(await readdir(join(services.home, "tmp", "exports"))).toEqual([]);
});

test("an edge passes all of it on, the result in pieces", async () => {
  const edge = await startServices({
    ENGINE_HOME: join(services.home, "edge"),
    ENGINE_ROLES: "edge",
    ENGINE_QUERY_PEERS: services.url,
    ENGINE_INGEST_PEERS: services.url,
  });
  services.closeFirst(() => edge.stop());
  const headers = { Authorization: `Bearer ${services.tokens.get("reader")}`, "Content-Type": "application/json" };
  // Random bytes do not shrink: more than one piece of the store's.
  const text = "SELECT md5(i::VARCHAR) || md5((-i)::VARCHAR) AS text FROM range(100000) AS t(i)";
  const body = JSON.stringify({ query: text, database: "a" });
  const begun = (await (await fetch(`${edge.url}/v1/exports`, { method: "POST", headers, body })).json()) as Json;
  const done = await finished(`/v1/exports/${String(begun["id"])}`);
  expect(Number(done["bytes"])).toBeGreaterThan(2 * 1024 * 1024);
  const through = await fetch(edge.url + String(done["download_url"]), { headers });
  expect(through.headers.get("content-length")).toBe(String(done["bytes"]));
  const direct = await services.send("reader", "GET", String(done["download_url"]));
  expect(Buffer.from(await through.arrayBuffer()).equals(Buffer.from(await direct.arrayBuffer()))).toBe(true);
  const refused = await fetch(edge.url + String(done["download_url"]), {
    headers: { Authorization: `Bearer ${services.tokens.get("other")}` },
  });
  expect(refused.status).toBe(404);
});

test("a result that is not there any more is gone", async () => {
  const { id, key } = await exported("SELECT 1 AS one");
  await rm(await placeOf(String(key)));
  expect(await json("reader", "GET", `/v1/exports/${String(id)}/download`)).toMatchObject({
    httpStatus: 410,
    error: { code: "gone" },
  });
});

/** Where the object of that key is, below the server's home. */
async function placeOf(key: string): Promise<string> {
  const found = (await readdir(services.home, { recursive: true })).find((name) => name.endsWith(key));
  if (found === undefined) throw new Error(`there is no object ${key}`);
  return join(services.home, found);
}

test("what ingest wrote passes verification, and a byte that changed is found", async () => {
  const verify = async (): Promise<Json> => {
    const payload = { database: "b", table: "events" };
    const job = await json("admin", "POST", "/v1/jobs", { kind: "maintenance.verify_extents", database: "b", payload });
    return finished(`/v1/jobs/${String(job["job_id"])}`, "admin");
  };
  expect(await verify()).toMatchObject({ status: "done", result: { rows: 5_000, problems: [], ok: true } });
  const name = (await readdir(services.home, { recursive: true })).find((path) =>
    /\/b\/events\/.*\.(tlm|parquet)$/.test(path),
  );
  const path = join(services.home, name ?? "");
  const bytes = await readFile(path);
  bytes[bytes.byteLength >> 1] = (bytes[bytes.byteLength >> 1] ?? 0) ^ 255;
  await writeFile(path, bytes);
  const { result, status } = (await verify()) as { result: Json; status: string };
  expect(status).toBe("done");
  expect(result).toMatchObject({ ok: false, problems_total: 1 });
  expect(result["problems"]).toEqual([
    {
      extent_id: expect.any(String) as string,
      object_key: expect.stringMatching(/^engine\/b\/events\//) as string,
      problem: expect.stringMatching(/^checksum: /) as string,
    },
  ]);
});

import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { CalledServices, type Json } from "../api/services.test-kit.ts";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { ndjson } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";

/** How soon rows are published for Iceberg clients: on request, within a bound, and those of older files. */

type Who = "admin" | "writer" | "reader" | "limited";
const CALLERS = [
  ["admin", "admin"],
  ["writer", "write"],
  ["reader", "read"],
] as const;

let services: CalledServices<Who>;
const closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  // It merges on request alone.
  services = await CalledServices.start<Who>(CALLERS, { ENGINE_COMPACTION_POLL_SECS: "86400" });
  await services.limit("limited", "write", ["other"], "admin");
}, 120_000);
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});
afterAll(() => services.close());

async function started(env: Record<string, string>): Promise<CalledServices<Who>> {
  const own = await CalledServices.start<Who>(CALLERS, env);
  closers.push(() => own.close());
  return own;
}

async function ingest(
  table: string,
  rows: readonly Json[],
  headers: Record<string, string> = {},
  to = services,
): Promise<void> {
  const all = { "X-Table": table, "Content-Type": "application/x-ndjson", ...headers };
  expect((await to.send("writer", "POST", "/v1/ingest", ndjson(rows), all)).status).toBe(200);
}

const pathOf = (table: string) => `/v1/admin/databases/default/tables/${table}`;
const publish = (table: string, who: Who = "writer", to = services) => to.json(who, "POST", `${pathOf(table)}/publish`);
const waiting = async (table: string, to = services) => {
  const { unpublished_rows: rows, unpublished_bytes: bytes } = await to.json("writer", "GET", pathOf(table));
  return [rows, Number(bytes) > 0];
};
const currentOf = async (table: string) => {
  const { metadata } = await services.json("reader", "GET", `/iceberg/v1/namespaces/default/tables/${table}`);
  const of = metadata as { "current-snapshot-id": number; snapshots: { summary: Record<string, string> }[] };
  return { id: String(of["current-snapshot-id"]), summary: of.snapshots.at(-1)?.summary };
};
async function rowsOf(sql: string, to = services): Promise<Json[]> {
  const headers = { Accept: "application/x-ndjson" };
  const answer = await to.send("reader", "POST", "/v1/query", sql, headers);
  const text = await answer.text();
  expect([answer.status, text]).toEqual([200, text]);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Json);
}

test("what a table has is published, and the answer says at which snapshot", async () => {
  for (let n = 0; n < 3; n++) await ingest("asked", [{ n }, { n }]);
  expect(await waiting("asked")).toEqual([6, true]);
  const done = await publish("asked");
  expect(done).toMatchObject({ httpStatus: 200, rows_published: 6, pending_rows: 0 });
  const current = await currentOf("asked");
  expect(done["snapshot_id"]).toBe(current.id);
  expect(current.summary).toMatchObject({ "total-records": "6", "engine.pending-rows": "0" });
  expect(await waiting("asked")).toEqual([0, false]);
  // There is nothing to do, so nothing is done.
  expect(await publish("asked")).toMatchObject({ rows_published: 0, snapshot_id: current.id });
  await ingest("asked", [{ n: 3 }]);
  expect(await publish("asked")).toMatchObject({ rows_published: 1, pending_rows: 0 });
  expect(await rowsOf("SELECT count(*) AS rows FROM asked")).toEqual([{ rows: 7 }]);
});

test("a table without rows has nothing to publish; one that is not there, or not for the caller, is refused", async () => {
  await services.json("writer", "POST", pathOf("empty"), {});
  expect(await publish("empty")).toMatchObject({ httpStatus: 200, rows_published: 0, pending_rows: 0 });
  expect(await publish("none")).toMatchObject({ httpStatus: 404 });
  expect(await publish("empty", "reader")).toMatchObject({ httpStatus: 403 });
  expect(await publish("empty", "limited")).toMatchObject({ httpStatus: 403 });
});

test("the command publishes a table of a database, and says what it did", async () => {
  await ingest("by-command", [{ n: 1 }, { n: 2 }]);
  const env = { ENGINE_SERVER_URL: services.url, ENGINE_TOKEN: services.tokens.get("writer") ?? "" };
  const said = await runHere(["publish", "by-command"], { env });
  expect(said).toMatchObject({ code: 0, stderr: "" });
  expect(said.stdout).toMatch(/^2 rows of default\.by-command published at snapshot \d+\n$/);
  const json = await runHere(["publish", "by-command", "--db", "default", "--json"], { env });
  expect(JSON.parse(json.stdout)).toMatchObject({ rows_published: 0, pending_rows: 0 });
  const none = await runHere(["publish", "by-command", "--db", "elsewhere"], { env });
  expect([none.code === 0, none.stderr]).toEqual([false, expect.stringContaining("does not exist")]);
});

test("several at once, of one table and of others, are all answered", async () => {
  const tables = ["one", "two", "one", "two"];
  for (const table of tables) await ingest(table, [{ n: 1 }]);
  const all = await Promise.all(tables.map((table) => publish(table)));
  expect(all.map(({ httpStatus, pending_rows: rows }) => [httpStatus, rows])).toEqual(tables.map(() => [200, 0]));
});

test("a file with whole numbers in a column that is real since waits, and is published on request", async () => {
  const infer = { "X-Engine-Infer-Types": "true" };
  await ingest("widened", [{ took: 1 }, { took: 2 }], infer);
  await publish("widened");
  await ingest("widened", [{ took: 0.5 }], infer);
  const publishable = async () =>
    (
      await rowsOf(
        "SELECT format, is_publishable FROM system.extents WHERE table_name = 'widened' ORDER BY begin_snapshot",
      )
    ).map(({ format, is_publishable: is }) => [format, is]);
  expect(await publishable()).toEqual([
    ["parquet", false],
    ["tlm", false],
  ]);
  expect(await waiting("widened")).toEqual([3, true]);
  expect(await publish("widened")).toMatchObject({ rows_published: 3, pending_rows: 0 });
  expect(await publishable()).toEqual([["parquet", true]]);
  expect((await currentOf("widened")).summary).toMatchObject({ "total-records": "3", "engine.pending-rows": "0" });
  expect(await rowsOf("SELECT took FROM widened ORDER BY took")).toEqual([{ took: 0.5 }, { took: 1 }, { took: 2 }]);
});

test("a job writes older files anew, and says how far it is", async () => {
  const parquet = await started({ ENGINE_COMPACTION_POLL_SECS: "86400", ENGINE_WRITE_FORMAT: "parquet" });
  // A flush that brings its columns is Parquet of version 1.
  for (const name of ["a", "b", "c"]) await ingest("older", [{ [name]: "x" }], {}, parquet);
  const versions = "SELECT format_version FROM system.extents ORDER BY begin_snapshot";
  expect(await rowsOf(versions, parquet)).toEqual([1, 1, 1].map((version) => ({ format_version: version })));
  const payload = { database: "default", table: "older" };
  const job = { kind: "maintenance.rewrite_extents", database: "default", payload };
  expect(await parquet.json("reader", "POST", "/v1/jobs", job)).toMatchObject({ httpStatus: 403 });
  const { job_id: id } = await parquet.json("writer", "POST", "/v1/jobs", job);
  const seen = () => parquet.json("writer", "GET", `/v1/jobs/${String(id)}`);
  await eventually(async () => ["done", "failed", "dead"].includes(String((await seen())["status"])));
  const { status, result, progress } = await seen();
  expect([status, result]).toEqual(["done", { extents: 3, rows: 3, bytes: expect.any(Number) as number }]);
  expect(progress).toMatchObject({ extents: 3, extents_total: 3, rows_total: 3 });
  expect(await waiting("older", parquet)).toEqual([0, false]);
  expect(await rowsOf(versions, parquet)).toEqual([{ format_version: 2 }]);
  const gone = { ...job, payload: { ...payload, table: "none" } };
  const { job_id: none } = await parquet.json("writer", "POST", "/v1/jobs", gone);
  await eventually(async () => {
    const { error } = await parquet.json("writer", "GET", `/v1/jobs/${String(none)}`);
    return String(error).includes("there is no table");
  });
}, 120_000);

test("what is damaged cannot be published: whoever asks is told at once, the job fails, and the rest is published", async () => {
  const damaged = await started({ ENGINE_COMPACTION_POLL_SECS: "86400" });
  await ingest("broken", [{ n: 1 }], {}, damaged);
  await spoilExtents(damaged.home);
  await ingest("broken", [{ n: 2 }], {}, damaged);
  const { httpStatus, error } = await publish("broken", "writer", damaged);
  expect([httpStatus, error]).toMatchObject([
    503,
    {
      code: "unavailable",
      message: expect.stringMatching(
        /^1 row of table "default.broken" cannot be merged: the extents are damaged/,
      ) as string,
    },
  ]);
  expect(await waiting("broken", damaged)).toEqual([1, true]);
  const payload = { database: "default", table: "broken" };
  const job = { kind: "maintenance.rewrite_extents", database: "default", payload };
  const { job_id: id } = await damaged.json("writer", "POST", "/v1/jobs", job);
  await eventually(async () => {
    const seen = await damaged.json("writer", "GET", `/v1/jobs/${String(id)}`);
    return String(seen["error"]).startsWith("extents that could not be merged: 1;");
  });
}, 120_000);

/** Changes a byte of each file of rows under the home. */
async function spoilExtents(home: string): Promise<void> {
  const names = (await readdir(home, { recursive: true })).filter((name) => name.endsWith(".tlm"));
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) {
    const bytes = await readFile(join(home, name));
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    await writeFile(join(home, name), bytes);
  }
}

test("with a bound rows are published by themselves, the later ones of a day without the earlier", async () => {
  const bound = await started({ ENGINE_COMPACTION_POLL_SECS: "1", ENGINE_ICEBERG_MAX_LAG_SECS: "1" });
  for (let n = 0; n < 2; n++) {
    await ingest("bound", [{ n }], {}, bound);
    await eventually(async () => (await waiting("bound", bound))[0] === 0);
  }
  const extents = "SELECT format, rows FROM system.extents";
  expect(await rowsOf(extents, bound)).toEqual([1, 1].map((rows) => ({ format: "parquet", rows })));
}, 120_000);

test("a table may have a bound of its own where the server has none", async () => {
  const own = await started({ ENGINE_COMPACTION_POLL_SECS: "1" });
  expect(await own.json("writer", "POST", pathOf("soon"), { open_lag_secs: 1 })).toMatchObject({ open_lag_secs: 1 });
  await own.json("writer", "POST", pathOf("later"), {});
  for (const table of ["later", "soon"]) await ingest(table, [{ body: "a" }], {}, own);
  await eventually(async () => (await waiting("soon", own))[0] === 0);
  expect(await waiting("later", own)).toEqual([1, true]);
}, 120_000);

const post = (url: string, path: string, body?: string) =>
  fetch(url + path, { method: "POST", ...(body === undefined ? {} : { body, headers: NDJSON }) });
const NDJSON = { "X-Table": "killed", "Content-Type": "application/x-ndjson" };
const described = async (url: string) => {
  const { row_count: rows, unpublished_rows: unpublished } = (await (
    await fetch(url + pathOf("killed"))
  ).json()) as Json;
  return [rows, unpublished];
};

test("where nobody merges the answer comes and says so; whoever merges later does what was asked for", async () => {
  const { home, remove } = await temporaryHome();
  closers.push(remove);
  const idle = await startEngine({ home, env: { ENGINE_COMPACTION_POLL_SECS: "0" } });
  closers.push(() => idle.stop("SIGKILL"));
  await post(idle.url, "/v1/ingest", ndjson([{ n: 1 }]));
  const answer = await post(idle.url, `${pathOf("killed")}/publish`);
  expect([answer.status, await answer.json()]).toMatchObject([
    503,
    {
      error: {
        code: "unavailable",
        message: expect.stringMatching(
          /^1 row of table "default.killed" cannot be merged, for no server merges: start one/,
        ) as string,
      },
    },
  ]);
  expect(await described(idle.url)).toEqual([1, 1]);
  await idle.stop("SIGKILL");
  const merging = await startEngine({ home, env: { ENGINE_COMPACTION_POLL_SECS: "86400" } });
  closers.push(() => merging.stop("SIGKILL"));
  await eventually(async () => (await described(merging.url))[1] === 0);
}, 120_000);

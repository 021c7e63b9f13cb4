import { readdir } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ndjson } from "../support/client.ts";
import { CalledServices, type Json } from "./services.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

/** Dropping tables and databases, and deleting rows, as clients see it: one server with all roles. */

type Who = "admin" | "writer" | "limited";

let services: CalledServices<Who>;

beforeAll(async () => {
  const callers = [
    ["admin", "admin"],
    ["writer", "write"],
  ] as const;
  services = await CalledServices.start<Who>(callers, {
    ENGINE_PHYSICAL_GC_GRACE_SECS: "1",
    ENGINE_PHYSICAL_GC_POLL_SECS: "1",
  });
  await ingest("limited_to", "t", [{ body: "x" }]);
  await services.limit("limited", "admin", ["limited_to"], "admin");
}, 120_000);
afterAll(() => services.close());

async function json(who: Who, method: string, path: string, body?: unknown, database = "default"): Promise<Json> {
  const answer = await services.json(who, method, path, body, { "X-Database": database });
  return { ...answer, code: (answer["error"] as Json | undefined)?.["code"] };
}

async function ingest(database: string, table: string, rows: readonly Json[], more: Record<string, string> = {}) {
  const headers = { "X-Database": database, "X-Table": table, "Content-Type": "application/x-ndjson", ...more };
  const answer = await services.send("writer", "POST", "/v1/ingest", ndjson(rows), headers);
  expect(answer.status).toBe(200);
  return (await answer.json()) as { snapshot_id: string; replayed: boolean };
}

async function query(text: string, database = "default"): Promise<{ status: number; rows: Json[]; text: string }> {
  const answer = await services.send("admin", "POST", "/v1/query", text, { "X-Database": database });
  const body = await answer.text();
  const lines = answer.status === 200 && body !== "" ? body.trimEnd().split("\n") : [];
  return { status: answer.status, rows: lines.map((line) => JSON.parse(line) as Json), text: body };
}

async function deleted(table: string, where: string, database = "default"): Promise<Json> {
  const begun = await json("admin", "POST", `/v1/catalog/tables/${table}/delete`, { where }, database);
  expect(begun["httpStatus"]).toBe(202);
  return await ended(String(begun["id"]));
}

async function ended(id: string): Promise<Json> {
  let seen: Json = {};
  await eventually(async () => {
    seen = await json("admin", "GET", `/v1/catalog/deletions/${id}`);
    return ["done", "failed", "cancelled"].includes(String(seen["status"]));
  });
  return seen;
}

const people = (...names: readonly string[]) =>
  names.map((who, i) => ({ at: new Date(1_767_225_600_000 + i * 1_000).toISOString(), who, n: i, body: `of ${who}` }));

const objectsOf = async (table: string): Promise<string[]> => {
  const all = await readdir(services.home, { recursive: true });
  return all.filter((path) => path.includes(`/${table}/`) && /\.(tlm|parquet)$/.test(path));
};

describe("rows", () => {
  test("are counted, then deleted at one snapshot, and their bytes go; a report says when", async () => {
    const first = await ingest("default", "people", people("ann", "bob", "cleo"));
    await ingest("default", "people", people("ann", "ann"));
    await ingest("default", "people", people("dora"));
    const where = "who = 'ann' AND n::BIGINT >= 0";
    const dry = await json("admin", "POST", "/v1/catalog/tables/people/delete", { where, dry_run: true });
    expect(dry).toMatchObject({ httpStatus: 200, rows: 3, extents: 2, extents_ended: 1, extents_total: 3 });
    expect((await query("SELECT count(*) AS n FROM people")).rows).toEqual([{ n: 6 }]);
    const report = await deleted("people", where);
    expect(report).toMatchObject({
      status: "done",
      rows: 3,
      extents_ended: 1,
      extents_rewritten: 1,
      where,
      error: null,
    });
    expect((await query("SELECT who FROM people ORDER BY who")).rows.map(({ who }) => who)).toEqual([
      "bob",
      "cleo",
      "dora",
    ]);
    const travel = await query(`SELECT * FROM people AT (VERSION => ${first.snapshot_id})`);
    expect(travel.status).not.toBe(200);
    expect(JSON.parse(travel.text)).toMatchObject({ error: { code: "snapshot_expired" } });
    const snapshot = Number(report["snapshot_id"]);
    expect((await query(`SELECT count(*) AS n FROM people AT (VERSION => ${snapshot})`)).rows).toEqual([{ n: 3 }]);
    // Rows that come after it stay.
    await ingest("default", "people", people("ann"));
    expect((await query("SELECT count(*) AS n FROM people WHERE who = 'ann'")).rows).toEqual([{ n: 1 }]);
    await eventually(async () => {
      // The grace is counted from the next snapshot on.
      await ingest("default", "ticks", [{ body: "tick" }]);
      const seen = await json("admin", "GET", `/v1/catalog/deletions/${String(report["id"])}`);
      return seen["bytes_gone_at"] !== null;
    });
    expect(await objectsOf("people")).toHaveLength(3);
    const listed = await json("admin", "GET", "/v1/catalog/deletions?limit=1");
    expect(listed["deletions"]).toMatchObject([{ id: report["id"], rows: 3, deleted_by: report["deleted_by"] }]);
  });

  test("go in deletions side by side, each its own, beside dry runs and queries", async () => {
    const names = ["a", "b", "c", "d", "e"];
    for (let i = 0; i < 4; i++) await ingest("default", "crowd", people(...names, "stays"));
    const one = async (who: string): Promise<void> => {
      const dry = { where: `who = '${who}'`, dry_run: true };
      const counted = json("admin", "POST", "/v1/catalog/tables/crowd/delete", dry);
      expect(await deleted("crowd", `who = '${who}'`)).toMatchObject({ status: "done", rows: 4 });
      expect(await counted).toMatchObject({ httpStatus: 200 });
      expect((await query(`SELECT count(*) AS n FROM crowd WHERE who IN ('${who}', 'stays')`)).rows).toEqual([
        { n: 4 },
      ]);
    };
    await Promise.all(names.map(one));
    expect((await query("SELECT who, count(*) AS n FROM crowd GROUP BY ALL")).rows).toEqual([{ who: "stays", n: 4 }]);
  });

  test("stay when the condition fails on one of them", async () => {
    await ingest("default", "texts", [{ ms: "12" }, { ms: "none" }]);
    const begun = await json("admin", "POST", "/v1/catalog/tables/texts/delete", { where: "ms::BIGINT > 1" });
    expect(begun["httpStatus"]).toBe(202);
    const seen = await ended(String(begun["id"]));
    expect(seen).toMatchObject({ status: "failed", rows: null, snapshot_id: null });
    expect(String(seen["error"])).toMatch(/none/);
    expect((await query("SELECT count(*) AS n FROM texts")).rows).toEqual([{ n: 2 }]);
  });

  test.each([
    ["who IN (SELECT who FROM texts)", 400],
    ["at < now()", 400],
    ["missing = 1", 400],
    ["true) OR (", 400],
    ["read_text('/etc/passwd') = 'x'", 400],
    ["true; DROP TABLE people", 400],
    ["", 400],
  ])("are not deleted by %s, dry or not", async (where, status) => {
    await ingest("default", "kept", people("ann"));
    for (const dry_run of [true, false]) {
      const answer = await json("admin", "POST", "/v1/catalog/tables/kept/delete", { where, dry_run });
      expect(answer["httpStatus"]).toBe(status);
    }
    expect((await query("SELECT count(*) AS n FROM kept")).rows).not.toEqual([{ n: 0 }]);
  });

  test("are admins' to delete, of their databases, and by that route alone", async () => {
    const path = "/v1/catalog/tables/people/delete";
    expect(await json("writer", "POST", path, { where: "true" })).toMatchObject({ httpStatus: 403 });
    expect(await json("limited", "POST", path, { where: "true" })).toMatchObject({ httpStatus: 403 });
    expect(await json("admin", "POST", "/v1/catalog/tables/absent/delete", { where: "true" })).toMatchObject({
      httpStatus: 404,
      code: "table_not_found",
    });
    const payload = { database: "default", table: "people", table_id: 1, where: "true" };
    const job = { kind: "maintenance.delete_rows", database: "default", payload };
    expect(await json("admin", "POST", "/v1/jobs", job)).toMatchObject({ httpStatus: 403 });
    const own = await deleted("t", "body = 'nothing'", "limited_to");
    const other = await deleted("kept", "who = 'nobody'");
    expect(await json("limited", "GET", `/v1/catalog/deletions/${String(own["id"])}`)).toMatchObject({
      httpStatus: 200,
    });
    expect(await json("limited", "GET", `/v1/catalog/deletions/${String(other["id"])}`)).toMatchObject({
      httpStatus: 404,
    });
    const { deletions } = await json("limited", "GET", "/v1/catalog/deletions");
    expect((deletions as Json[]).map(({ id }) => id)).toEqual([own["id"]]);
  });
});

describe("tables and databases", () => {
  test("are gone at once; made again they show nothing of the first, now or before", async () => {
    const keyed = { "X-Idempotency-Key": "once" };
    const first = await ingest("default", "events", [{ body: "old", extra: "x" }], keyed);
    expect(await json("writer", "DELETE", "/v1/catalog/tables/events")).toMatchObject({ httpStatus: 403 });
    const dropped = await json("admin", "DELETE", "/v1/catalog/tables/Events");
    expect(dropped).toMatchObject({ httpStatus: 200, database: "default", table: "events", rows: 1, extents: 1 });
    expect(await json("admin", "DELETE", "/v1/catalog/tables/events")).toMatchObject({ httpStatus: 404 });
    expect((await query("SELECT * FROM events")).status).toBe(404);
    expect((await query(`SELECT * FROM events AT (VERSION => ${first.snapshot_id})`)).status).toBe(404);
    const refused = await services.send("writer", "POST", "/v1/ingest", '{"body":"x"}\n', {
      "X-Table": "events",
      "X-Auto-Create": "false",
    });
    expect(refused.status).toBe(404);
    expect((await ingest("default", "events", [{ body: "new" }], keyed)).replayed).toBe(false);
    expect((await query("SELECT body, count(*) AS n FROM events GROUP BY ALL")).rows).toEqual([{ body: "new", n: 1 }]);
    expect((await query(`SELECT * FROM events AT (VERSION => ${first.snapshot_id})`)).rows).toEqual([]);
    const { databases } = await json("admin", "GET", "/v1/catalog/schema");
    const tables = (databases as { name: string; tables: { name: string; columns: { name: string }[] }[] }[])
      .find(({ name }) => name === "default")
      ?.tables.filter(({ name }) => name === "events");
    expect(tables).toHaveLength(1);
    expect(tables?.[0]?.columns.map(({ name }) => name)).not.toContain("extra");
    await eventually(async () => {
      await ingest("default", "ticks", [{ body: "tick" }]);
      return (await objectsOf("events")).length === 1;
    });
  });

  test("a database goes with all its tables, and the log says who did it", async () => {
    await ingest("whole", "a", [{ body: "1" }]);
    await ingest("whole", "b", [{ body: "2" }, { body: "3" }]);
    expect(await json("limited", "DELETE", "/v1/catalog/databases/whole")).toMatchObject({ httpStatus: 403 });
    const dropped = await json("admin", "DELETE", "/v1/catalog/databases/whole");
    expect(dropped).toMatchObject({ httpStatus: 200, database: "whole", tables: 2, rows: 3, extents: 2 });
    expect(await json("admin", "DELETE", "/v1/catalog/databases/whole")).toMatchObject({
      httpStatus: 404,
      code: "database_not_found",
    });
    expect((await query("SELECT * FROM a", "whole")).status).toBe(404);
    await ingest("whole", "b", [{ body: "4" }]);
    expect((await query("SELECT body FROM b", "whole")).rows).toEqual([{ body: "4" }]);
    expect((await query("SELECT body FROM a", "whole")).status).toBe(404);
    for (const [action, target] of [
      ["database.drop", "whole"],
      ["table.drop", "default.events"],
      ["rows.delete", "default.people"],
    ]) {
      const { entries } = (await json("admin", "GET", `/v1/admin/audit?action=${action}`)) as { entries?: Json[] };
      expect(entries?.map((entry) => entry["target"])).toContain(target);
    }
  });
});

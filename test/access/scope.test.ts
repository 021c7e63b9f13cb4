import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { jsonRequest, startWorld, type Reply, type World } from "./world.test-kit.ts";

/**
 * A token that is limited to the database `a` sees nothing of `b`, whose every name here has the word `hidden` in it.
 * Each test first shows that the same request of an unlimited token does see it, so that none passes by asking nothing.
 */
const HIDDEN_DATABASE = "hidden_database";
const HIDDEN_TABLE = "hidden_table";

let world: World;
beforeAll(async () => {
  world = await startWorld();
  const headers = { "x-database": HIDDEN_DATABASE, "x-table": HIDDEN_TABLE };
  const body = '{"body":"hidden row","hidden_column":"x"}\n';
  const stored = await world.send({ method: "POST", path: "/v1/ingest", headers, body }, world.caller("session admin"));
  expect(stored.status).toBe(200);
}, 120_000);
afterAll(() => world.stop());

const LIMITED = ["api_token admin limited to a", "oidc admin limited to a"] as const;

function query(by: string, text: string, database = "a"): Promise<Reply> {
  return world.send(
    { method: "POST", path: "/v1/query", headers: { "x-database": database }, body: text },
    world.caller(by),
  );
}

function ask(by: string, method: string, path: string, body?: unknown): Promise<Reply> {
  return world.send(jsonRequest(method, path, body), world.caller(by));
}

/** What two answers must have in common for nobody to tell one from the other. */
function outlineOf({ status, text }: Reply, name: string): unknown {
  return { status, text: text.replaceAll(name, "<name>").replace(/"request_id":"[^"]*"/, "") };
}

describe.each(LIMITED)("%s", (limited) => {
  test("finds no other database, as if there were none", async () => {
    const text = `SELECT * FROM ${HIDDEN_TABLE}`;
    expect(await query("session read", text, HIDDEN_DATABASE)).toMatchObject({ status: 200 });
    const hidden = await query(limited, text, HIDDEN_DATABASE);
    expect(hidden.json["error"]).toMatchObject({ code: "database_not_found" });
    const missing = await query(limited, text, "missing_database");
    expect(outlineOf(hidden, HIDDEN_DATABASE)).toEqual(outlineOf(missing, "missing_database"));
  });

  test("reaches none from its own by a qualified name", async () => {
    for (const name of [
      `${HIDDEN_DATABASE}.${HIDDEN_TABLE}`,
      `${HIDDEN_DATABASE}.main.${HIDDEN_TABLE}`,
      HIDDEN_TABLE,
    ]) {
      const reply = await query(limited, `SELECT * FROM ${name}`);
      expect([400, 404]).toContain(reply.status);
      expect(reply.text).not.toContain("hidden row");
      expect(reply.text).not.toContain("hidden_column");
      const absent = name.replaceAll("hidden", "absent");
      const missing = await query(limited, `SELECT * FROM ${absent}`);
      expect(outlineOf(reply, "hidden")).toEqual(outlineOf(missing, "absent"));
    }
  });

  test("is not told its name by a suggestion", async () => {
    const misspelled = `${HIDDEN_DATABASE}s`;
    expect((await query("session read", "SELECT 1", misspelled)).text).toContain(`"suggestion":"${HIDDEN_DATABASE}"`);
    const reply = await query(limited, "SELECT 1", misspelled);
    expect(reply.json["error"]).not.toHaveProperty("suggestion");
    const table = await query(limited, `SELECT * FROM ${HIDDEN_TABLE}s`);
    expect(table.json["error"]).not.toHaveProperty("suggestion");
  });

  test("sees nothing of it in the system tables", async () => {
    const marker = "SELECT 'asked of the other database'";
    expect(await query("session read", marker, HIDDEN_DATABASE)).toMatchObject({ status: 200 });
    const whole = await query("session read", "SELECT * FROM system.queries", HIDDEN_DATABASE);
    expect(whole.text).toContain("asked of the other");
    for (const name of ["tables", "columns", "column_stats", "extents", "snapshots", "staged"]) {
      const seen = await query(limited, `SELECT * FROM system.${name}`);
      expect([name, seen.status]).toEqual([name, 200]);
      expect(seen.text).not.toContain("hidden");
    }
    // What was asked of its own database may well name another one; what was asked of the other one is not there.
    const queries = await query(limited, "SELECT * FROM system.queries");
    expect(queries.status).toBe(200);
    expect(queries.text).not.toContain("asked of the other");
    expect((await query(limited, "SELECT * FROM system.queries", HIDDEN_DATABASE)).status).toBe(404);
    expect((await query(limited, "SELECT * FROM (SHOW ALL TABLES)")).text).not.toContain("hidden_column");
  });

  test("sees nothing of it in the schema", async () => {
    expect((await ask("session read", "GET", "/v1/catalog/schema")).text).toContain(HIDDEN_TABLE);
    const { json, text } = await ask(limited, "GET", "/v1/catalog/schema");
    expect((json["databases"] as { name: string }[]).map(({ name }) => name)).toEqual(["a"]);
    expect(text).not.toContain("hidden");
  });

  test("may not write to it nor make another one, whatever there is", async () => {
    const ingest = (database: string, by = limited as string) => {
      const headers = { "x-database": database, "x-table": "t" };
      return world.send({ method: "POST", path: "/v1/ingest", headers, body: '{"body":"x"}\n' }, world.caller(by));
    };
    const [hidden, missing] = [await ingest(HIDDEN_DATABASE), await ingest("missing_database")];
    expect(hidden.json["error"]).toMatchObject({ code: "forbidden" });
    expect(outlineOf(hidden, HIDDEN_DATABASE)).toEqual(outlineOf(missing, "missing_database"));
    const databases = async () => (await ask("session read", "GET", "/v1/catalog/schema")).text;
    expect(await databases()).not.toContain("missing_database");
    expect(await ingest("A")).toMatchObject({ status: 200 });
    for (const [method, suffix] of [
      ["POST", ""],
      ["GET", ""],
    ] as const) {
      const at = (database: string) => `/v1/admin/databases/${database}/tables/${HIDDEN_TABLE}${suffix}`;
      const there = await ask(limited, method, at(HIDDEN_DATABASE));
      expect(there.json["error"]).toMatchObject({ code: "forbidden" });
      const nowhere = await ask(limited, method, at("missing_database"));
      expect(outlineOf(there, HIDDEN_DATABASE)).toEqual(outlineOf(nowhere, "missing_database"));
    }
    expect(await databases()).not.toContain("missing_database");
  });

  test("sees no job of it, and changes none", async () => {
    const hiddenJob = { kind: "x.hidden", database: HIDDEN_DATABASE };
    const { job_id: id } = await world.admin("POST", "/v1/jobs", hiddenJob);
    const { job_id: ofNone } = await world.admin("POST", "/v1/jobs", { kind: "x.hidden" });
    const { job_id: own } = await world.admin("POST", "/v1/jobs", { kind: "x.own", database: "a" });
    expect((await ask("session admin", "GET", "/v1/jobs")).text).toContain("hidden");
    const seen = await ask(limited, "GET", "/v1/jobs");
    expect(seen.text).toContain(String(own));
    expect(seen.text).not.toContain("hidden");
    expect((await ask(limited, "GET", "/v1/jobs?kind=x.hidden")).json).toEqual({ jobs: [] });
    for (const [method, suffix] of [
      ["GET", ""],
      ["GET", "/events"],
      ["POST", "/cancel"],
      ["POST", "/retry"],
    ] as const) {
      const missing = await ask(limited, method, `/v1/jobs/nothing${suffix}`);
      for (const hidden of [id, ofNone]) {
        const reply = await ask(limited, method, `/v1/jobs/${String(hidden)}${suffix}`);
        expect(reply.status).toBe(404);
        expect(outlineOf(reply, String(hidden))).toEqual(outlineOf(missing, "nothing"));
      }
    }
    expect(await world.admin("GET", `/v1/jobs/${String(id)}`)).toMatchObject({ status: "queued" });
    expect((await ask(limited, "POST", "/v1/jobs", hiddenJob)).json["error"]).toMatchObject({ code: "forbidden" });
    expect((await ask(limited, "GET", "/v1/workers")).status).toBe(403);
  });

  test("sees no token, credential, user or entry of others", async () => {
    const token = { name: "hidden token", role: "read", databases: [HIDDEN_DATABASE] };
    const { id: tokenId } = await world.admin("POST", "/v1/auth/tokens", token);
    // Of the same owner as the limited token, and for another database.
    const sibling = await ask("session admin", "POST", "/v1/auth/tokens", token);
    const value = { kind: "pat", token: "a secret" };
    const { id: credentialId } = await world.admin("POST", "/v1/credentials", { label: "hidden credential", value });
    for (const path of ["/v1/auth/tokens", "/v1/credentials"]) {
      expect((await ask("session admin", "GET", path)).text).toContain("hidden");
      const seen = await ask(limited, "GET", path);
      expect([path, seen.status]).toEqual([path, 200]);
      expect(seen.text).not.toContain("hidden");
    }
    for (const path of ["/v1/admin/users", "/v1/admin/audit"]) {
      expect([path, (await ask(limited, "GET", path)).status]).toEqual([path, 403]);
    }
    for (const path of [
      `/v1/auth/tokens/${String(tokenId)}`,
      `/v1/auth/tokens/${String(sibling.json["id"])}`,
      `/v1/credentials/${String(credentialId)}`,
    ]) {
      expect([path, (await ask(limited, "DELETE", path)).status]).toEqual([path, 404]);
      expect([path, (await ask("session admin", "DELETE", path)).status]).toEqual([path, 200]);
    }
  });
});

test("a limited caller makes tokens and credentials for its own databases only", async () => {
  const by = "oidc admin limited to a";
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const wider = { name: "wider", expires_at, databases: ["a", HIDDEN_DATABASE] };
  expect((await ask(by, "POST", "/v1/auth/tokens", wider)).json["error"]).toMatchObject({ code: "forbidden" });
  const made = await ask(by, "POST", "/v1/auth/tokens", { name: "own", expires_at });
  expect(made.json).toMatchObject({ databases: ["a"] });
  const value = { kind: "pat", token: "a secret" };
  const credential = await ask(by, "POST", "/v1/credentials", { label: "own", value });
  expect(credential.json).toMatchObject({ databases: ["a"] });
  const path = `/v1/credentials/${String(credential.json["id"])}`;
  expect((await ask("api_token admin limited to b", "GET", path)).status).toBe(404);
});

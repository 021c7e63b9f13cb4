import { execFile } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { query, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** Dropped files as a user sees them: a folder, queries, and what lies beside the files. */

const POLL = { ENGINE_FILEDROP_ENABLED: "1", ENGINE_FILEDROP_POLL_SECS: "1" };

let engine: Engine;
let home: string;
let remove: () => Promise<void>;

function pathOf(name: string): string {
  return join(home, "data", "ingest", name);
}

/** As careful writers do: under another name first. */
function drop(name: string, content: string | Uint8Array): void {
  const path = pathOf(name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.tmp`, content);
  renameSync(`${path}.tmp`, path);
}

const files = async () => {
  const sql = "SELECT key, state, rows, reason, line FROM system.filedrop";
  // The first file makes the database.
  const { rows } = await query(engine.url, sql, { "X-Database": "shop" });
  return new Map(rows.map(({ key, ...row }) => [String(key).replace(/^ingest\//, ""), row]));
};
const becomes = (name: string, state: string) => eventually(async () => (await files()).get(name)?.["state"] === state);
const bodies = async (table: string) =>
  (await rowsOf(engine.url, `SELECT body FROM ${table} ORDER BY body`, "shop")).map(({ body }) => body);

describe("a server with a folder for files", () => {
  beforeAll(async () => {
    const place = await temporaryHome();
    ({ home, remove } = place);
    engine = await startEngine({ home, env: POLL });
  });
  afterAll(async () => {
    await engine?.stop();
    await remove?.();
  });

  test("ingests them, and says what became of each", async () => {
    drop("shop/orders/a.ndjson", '{"body":"a1"}\n{"body":"a2"}\n');
    drop("shop/orders/b.json.gz", gzipSync('{"body":"b"}\n'));
    drop("shop/orders/c.csv", "body,n\nc,1\n");
    drop("shop/orders/bad.ndjson", '{"body":"bad"}\n{"body":}\n');
    for (const name of ["a.ndjson", "b.json.gz", "c.csv"]) await becomes(`shop/orders/${name}`, "ingested");
    await becomes("shop/orders/bad.ndjson", "rejected");
    expect(await bodies("orders")).toEqual(["a1", "a2", "b", "c"]);
    expect((await files()).get("shop/orders/a.ndjson")).toMatchObject({ rows: 2, reason: null });
    expect((await files()).get("shop/orders/bad.ndjson")).toMatchObject({ state: "rejected", line: 2, rows: null });
    const report = JSON.parse(readFileSync(pathOf("shop/orders/bad.ndjson.rejected.json"), "utf8"));
    expect(report).toMatchObject({
      key: "ingest/shop/orders/bad.ndjson",
      line: 2,
      reason: expect.stringMatching(/^line 2/),
    });
    const metrics = await (await fetch(`${engine.url}/metrics`)).text();
    expect(metrics).toMatch(/^engine_filedrop_files_total\{outcome="ingested"\} 3$/m);
    expect(metrics).toMatch(/^engine_filedrop_files_total\{outcome="rejected"\} 1$/m);
    expect(metrics).toMatch(/^engine_filedrop_rows_total 4$/m);
    expect(metrics).toMatch(/^engine_filedrop_waiting_files\{prefix="ingest"\} 0$/m);
  });

  test("tries a bad file again when it has changed, and takes the report away", async () => {
    drop("shop/mended/x.ndjson", "no\n");
    await becomes("shop/mended/x.ndjson", "rejected");
    expect(existsSync(pathOf("shop/mended/x.ndjson.rejected.json"))).toBe(true);
    drop("shop/mended/x.ndjson", '{"body":"mended"}\n');
    await becomes("shop/mended/x.ndjson", "ingested");
    await eventually(() => !existsSync(pathOf("shop/mended/x.ndjson.rejected.json")));
    drop("shop/mended/y.ndjson", "no\n");
    await becomes("shop/mended/y.ndjson", "rejected");
    unlinkSync(pathOf("shop/mended/y.ndjson"));
    await eventually(() => !existsSync(pathOf("shop/mended/y.ndjson.rejected.json")));
    await eventually(async () => !(await files()).has("shop/mended/y.ndjson"));
  });

  test("follows no link, waits for no pipe, and leaves hidden files alone", async () => {
    const secret = join(home, "secret.json");
    writeFileSync(secret, '{"body":"secret"}\n');
    mkdirSync(pathOf("shop/links/.hidden"), { recursive: true });
    symlinkSync(secret, pathOf("shop/links/link.json"));
    mkdirSync(join(home, "elsewhere"));
    writeFileSync(join(home, "elsewhere", "y.json"), '{"body":"secret"}\n');
    symlinkSync(join(home, "elsewhere"), pathOf("shop/links/folder"));
    writeFileSync(pathOf("shop/links/.hidden/z.json"), '{"body":"secret"}\n');
    await promisify(execFile)("mkfifo", [pathOf("shop/links/pipe.json")]);
    writeFileSync(pathOf("shop/links/a\nb\u0007.json"), '{"body":"odd"}\n');
    drop("shop/links/last.json", '{"body":"good"}\n');
    await becomes("shop/links/last.json", "ingested");
    expect(await bodies("links")).toEqual(["good"]);
    const known = [...(await files())].filter(([name]) => name.startsWith("shop/links/"));
    expect(known.map(([name, { state }]) => [name, state])).toEqual([
      ["shop/links/a\nb\u0007.json", "rejected"],
      ["shop/links/last.json", "ingested"],
    ]);
    expect(existsSync(pathOf("shop/links/a\nb\u0007.json.rejected.json"))).toBe(false);
  });

  test("stores both names of one file, each once", async () => {
    drop("shop/named/one.json", '{"body":"x"}\n');
    linkSync(pathOf("shop/named/one.json"), pathOf("shop/named/two.json"));
    await becomes("shop/named/two.json", "ingested");
    await becomes("shop/named/one.json", "ingested");
    expect(await bodies("named")).toEqual(["x", "x"]);
  });
});

test("what is looked after is what tokens may see, and files go when they are ingested", async () => {
  const place = await temporaryHome();
  ({ home } = place);
  const admin = "all-of-it";
  engine = await startEngine({
    home,
    env: { ...POLL, ENGINE_FILEDROP_DELETE_AFTER_INGEST: "true", ENGINE_AUTH_TOKENS: `${admin}:admin` },
  });
  try {
    drop("shop/orders/a.ndjson", '{"body":"a"}\n');
    drop("other/orders/b.ndjson", '{"body":"b"}\n');
    drop("loose.ndjson", "{}\n");
    await eventually(() => !existsSync(pathOf("shop/orders/a.ndjson")) && !existsSync(pathOf("other/orders/b.ndjson")));
    await eventually(() => existsSync(pathOf("loose.ndjson.rejected.json")));
    const seenBy = async (token: string, database: string) => {
      const headers = { Authorization: `Bearer ${token}`, "X-Database": database };
      const { rows } = await query(engine.url, "SELECT key FROM system.filedrop ORDER BY key", headers);
      return rows.map(({ key }) => String(key));
    };
    const tokenFor = async (database: string) => {
      const made = await fetch(`${engine.url}/v1/auth/tokens`, {
        method: "POST",
        headers: { Authorization: `Bearer ${admin}`, "Content-Type": "application/json" },
        body: JSON.stringify({ name: database, role: "read", databases: [database] }),
      });
      return ((await made.json()) as { token: string }).token;
    };
    await eventually(async () => (await seenBy(admin, "shop")).length === 3);
    expect(await seenBy(await tokenFor("shop"), "shop")).toEqual(["ingest/shop/orders/a.ndjson"]);
    expect(await seenBy(await tokenFor("other"), "other")).toEqual(["ingest/other/orders/b.ndjson"]);
    expect(existsSync(pathOf("loose.ndjson"))).toBe(true);
  } finally {
    await engine.stop();
    await place.remove();
  }
});

describe("a server does not start", () => {
  test.for([
    [
      { ENGINE_FILEDROP_PREFIXES: "in,engine/drop" },
      "ENGINE_FILEDROP_PREFIXES has engine/drop, which overlaps ENGINE_PATH_PREFIX",
    ],
    [{ ENGINE_FILEDROP_PREFIX: "Engine" }, "ENGINE_FILEDROP_PREFIX has Engine, which overlaps ENGINE_PATH_PREFIX"],
    [{ ENGINE_PATH_PREFIX: "ingest/own" }, "ENGINE_FILEDROP_PREFIXES has ingest, which overlaps ENGINE_PATH_PREFIX"],
    [{ ENGINE_FILEDROP_PREFIXES: "a/b,a" }, "ENGINE_FILEDROP_PREFIXES has a/b and a, which overlap"],
    [{ ENGINE_FILEDROP_PREFIXES: "a,../b" }, "ENGINE_FILEDROP_PREFIXES"],
    [{ ENGINE_FILEDROP_POLL_SECS: "0" }, "ENGINE_FILEDROP_POLL_SECS"],
  ] as const)("with %j", async ([env, message]) => {
    const place = await temporaryHome();
    try {
      await expect(startEngine({ home: place.home, env: { ...POLL, ...env } })).rejects.toThrow(message);
    } finally {
      await place.remove();
    }
  });
});

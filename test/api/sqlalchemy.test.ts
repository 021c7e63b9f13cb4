import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installedBy } from "../../src/core/gates.test-kit.ts";
import { ingest, ndjson } from "../support/client.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/**
 * A client of BI tools looks around: SQLAlchemy with Trino's dialect, which reads `information_schema` by plain SQL, over
 * the small driver in `engine_dbapi.py`. It lists what there is, reflects tables of two databases, and builds queries of
 * what it found.
 */
const TOOL = fileURLToPath(new URL("sqlalchemy-tool.py", import.meta.url));
const run = promisify(execFile);
const ADMIN = "admin-token-of-the-test";

const python = installedBy("install-sqlalchemy", "python3-venv");

let engine: Engine;
let removeHome: () => Promise<void>;
beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  const env = { ENGINE_AUTH_TOKENS: `${ADMIN}:admin`, ENGINE_SANDBOX_RUNTIME: "off" };
  engine = await startEngine({ home, env });
}, 120_000);
afterAll(async () => {
  await engine.stop();
  await removeHome();
});

const authorization = { Authorization: `Bearer ${ADMIN}` };

async function store(database: string, table: string, rows: string): Promise<void> {
  const { status, text } = await ingest(engine.url, table, rows, { ...authorization, "X-Database": database });
  if (status !== 200) throw new Error(text);
}

async function tokenFor(databases: readonly string[]): Promise<string> {
  const headers = { ...authorization, "Content-Type": "application/json" };
  const body = JSON.stringify({ name: "tool", role: "read", databases });
  const made = await fetch(`${engine.url}/v1/auth/tokens`, { method: "POST", headers, body });
  return ((await made.json()) as { token: string }).token;
}

async function told(token: string, database: string): Promise<unknown> {
  const env = { ...cleanEnv(), ENGINE_TEST_URL: engine.url, ENGINE_TEST_TOKEN: token, PYTHONDONTWRITEBYTECODE: "1" };
  const { stdout, stderr } = await run(python ?? "", [TOOL, database], { env });
  expect(stderr).toBe("");
  return JSON.parse(stdout) as unknown;
}

describe.skipIf(python === undefined)("SQLAlchemy", { timeout: 120_000 }, () => {
  const own = ["at", "label", "body", "props"];
  const columnsOfOwn = [
    ["at", "NULL", true],
    ["label", "VARCHAR", true],
    ["body", "VARCHAR", true],
    ["props", "JSON", true],
  ];
  const sales = {
    "sales.Odd-Names": [...columnsOfOwn, ["Some Field", "VARCHAR", true], ["select", "VARCHAR", true]],
    "sales.orders": columnsOfOwn,
  };

  beforeAll(async () => {
    const at = "2026-01-02T03:04:05Z";
    const schema = "label:string, ms:long, n:int, ratio:real, ok:bool, v:vector(2)";
    const argv = ["bin/engine.js", "create-table", "--name", "events", "--schema", schema];
    await run(process.execPath, argv, { env: { ...cleanEnv(), ENGINE_HOME: engine.home } });
    const typed = { at, n: 1, ratio: 1.5, ok: true, v: [1, 2] };
    const events = ndjson([
      { ...typed, label: "a", ms: 9 },
      { ...typed, label: "b", ms: 10 },
      { ...typed, at: "2026-02-02T00:00:00Z", label: "c", ms: 11 },
    ]);
    // More digits than a double has.
    await store("default", "events", `${events}\n{"at":"${at}","label":"c","ms":9007199254740993,"v":[3,4]}`);
    const orders = [
      { at, label: "a", body: "first" },
      { at: "2026-01-02T03:04:05.123456789Z", label: "b", body: "it's" },
      { at, label: "c", body: "first" },
    ];
    await store("sales", "orders", ndjson(orders));
    await store("sales", "Odd-Names", ndjson([{ at, "Some Field": "x", select: "y" }]));
    await store("secret", "orders", ndjson([{ at, label: "hidden", body: "canary" }]));
  });

  test("lists and reflects the tables of all databases, and joins them", async () => {
    expect(await told(ADMIN, "default")).toEqual({
      tables: { default: ["events"], sales: ["Odd-Names", "orders"], secret: ["orders"] },
      own: [["events"], []],
      columns: {
        "default.events": [
          ["at", "NULL", true],
          ["label", "VARCHAR", true],
          ["ms", "BIGINT", true],
          ["n", "INTEGER", true],
          ["ratio", "DOUBLE", true],
          ["ok", "BOOLEAN", true],
          ["v", "NULL", false],
        ],
        ...sales,
        "secret.orders": columnsOfOwn,
      },
      has: { default: false, sales: true, secret: true, absent: false },
      answers: {
        joined: [["b", 10, "it's", "2026-01-02T03:04:05.123456789Z"]],
        grouped: [
          ["a", 1, "9"],
          ["b", 1, "10"],
          ["c", 2, "9007199254740993"],
        ],
        odd: [["x", "y"]],
        catalogued: [[3]],
        none: [],
      },
      reflects: { sales: own, secret: own, absent: null },
    });
  });

  test("sees one database as a caller who may read one", async () => {
    expect(await told(await tokenFor(["sales"]), "sales")).toEqual({
      tables: { sales: ["Odd-Names", "orders"] },
      own: [["Odd-Names", "orders"], []],
      columns: sales,
      has: { default: false, sales: true, secret: false, absent: false },
      reflects: { sales: own, secret: null, absent: null },
    });
  });
});

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FEATURES } from "../../roles/features.ts";
import { referenceDocs } from "../../roles/reference.ts";
import { checkDeclared } from "../../src/query/system-tables/system-tables.ts";
import { loadConfig } from "../../src/config/load.ts";
import { commandsOf, jobKindsOf, optionRowsOf } from "../../src/feature/collect.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { query } from "../support/client.ts";
import { TOY_OPTIONS } from "./toy/options.ts";
import { TOYS } from "./toy/system-table.ts";
import { TOY } from "./toy/toy.ts";

/** A feature in one folder (`toy/`), added to the program by one line (`toy-engine-child.test-kit.ts`). */
const ENTRY = fileURLToPath(new URL("toy-engine-child.test-kit.ts", import.meta.url));
const [READER, WRITER] = ["a-token-that-reads", "a-token-that-writes"];

let engine: Engine;
let remove: () => Promise<void>;

beforeAll(async () => {
  const place = await temporaryHome();
  remove = place.remove;
  engine = await startEngine({
    home: place.home,
    entry: ENTRY,
    env: {
      ENGINE_AUTH_TOKENS: `${READER}:read,${WRITER}:write`,
      ENGINE_TOY_COLOUR: "blue",
      ENGINE_TOY_TIDY_MS: "50",
    },
  });
});
afterAll(async () => {
  await engine?.stop();
  await remove?.();
});

async function call(method: string, path: string, token?: string, body?: unknown) {
  const response = await fetch(engine.url + path, {
    method,
    headers: { "Content-Type": "application/json", ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, json: JSON.parse(text) as Record<string, unknown> };
}

const make = (name: string) => call("POST", "/v1/toys", WRITER, { name });
const list = async () => (await call("GET", "/v1/toys", READER)).json["toys"];

async function queryRows(url: string, text: string, token: string) {
  const { status, rows, json } = await query(url, text, { Authorization: `Bearer ${token}` });
  expect([status, json?.error]).toEqual([200, undefined]);
  return rows;
}

/** Runs the command line of the program with the toy. */
async function run(...args: string[]): Promise<string> {
  const env = { ...cleanEnv(), ENGINE_HOME: engine.home, ENGINE_TOKEN: READER, ENGINE_SERVER_URL: engine.url };
  return (await promisify(execFile)(process.execPath, [ENTRY, ...args], { env })).stdout;
}

describe("a feature that is one folder and one line", () => {
  test("is served: its table, its routes, its job, its option and its metric", async () => {
    const { status, json } = await make("bear");
    expect(status).toBe(202);
    const job = async () => (await call("GET", `/v1/jobs/${String(json["job_id"])}`, WRITER)).json;
    await expect.poll(job).toMatchObject({ kind: "toy.paint", status: "done", result: { colour: "blue" } });
    expect(await list()).toContainEqual({ name: "bear", colour: "blue" });
    const metrics = await (await fetch(`${engine.url}/metrics`)).text();
    expect(metrics).toMatch(/^engine_toy_painted_total [1-9]/m);
  });

  test("does its duty in the background", async () => {
    expect((await make("broken horse")).status).toBe(202);
    await expect.poll(list).not.toContainEqual(expect.objectContaining({ name: "broken horse" }));
    await expect
      .poll(async () => (await fetch(`${engine.url}/metrics`)).text())
      .toMatch(/engine_duty_runs_total\{duty="toy tidy",outcome="ok"\} [1-9]/);
  });

  test("has its system table read by queries, beside the others", async () => {
    expect((await make("kite")).status).toBe(202);
    const rows = (text: string) => queryRows(engine.url, text, READER);
    await expect
      .poll(() => rows("SELECT name, colour FROM system.toys WHERE name = 'kite'"))
      .toEqual([{ name: "kite", colour: "blue" }]);
    expect(await rows("SELECT count(*) AS n FROM SYSTEM.Toys t JOIN system.tables ON false")).toEqual([{ n: 0 }]);
    const unknown = await query(engine.url, "SELECT * FROM system.toy", { Authorization: `Bearer ${READER}` });
    expect(unknown.json.error).toMatchObject({ code: "table_not_found", suggestion: "system.toys" });
  });

  test("checks roles, and the body against its schema", async () => {
    const refused = await call("POST", "/v1/toys", READER, { name: "car" });
    expect(refused).toMatchObject({ status: 403, json: { error: { code: "forbidden" } } });
    const unknown = await call("GET", "/v1/toys");
    expect(unknown).toMatchObject({ status: 401, json: { error: { code: "unauthorized" } } });
    const malformed = await call("POST", "/v1/toys", WRITER, { title: "car" });
    expect(malformed).toMatchObject({ status: 400, json: { error: { code: "bad_request_body" } } });
    expect(await list()).not.toContainEqual(expect.objectContaining({ name: "car" }));
  });

  test("has its job kind known to the routes about jobs", async () => {
    const refused = await call("POST", "/v1/jobs", WRITER, { kind: "toy.paint", payload: { toy: "a" } });
    expect(refused).toMatchObject({ status: 403, json: { error: { code: "forbidden" } } });
  });

  test("is in the OpenAPI document, with the role that it needs and the refusals", async () => {
    const { json } = await call("GET", "/v1/openapi.json");
    const { "/v1/toys": toys } = json["paths"] as Record<string, Record<string, unknown>>;
    expect(toys).toMatchObject({
      post: {
        tags: ["Toys"],
        summary: "Make a toy",
        description: expect.stringContaining("`write`") as string,
        responses: { 202: {}, 401: {}, 403: {} },
      },
      get: { tags: ["Toys"], summary: "All toys", responses: { 200: {}, 401: {}, 403: {} } },
    });
  });

  test("is on the reference page", async () => {
    expect(await (await fetch(`${engine.url}/docs`)).text()).toContain("/v1/toys");
  });

  test("has its command run, listed and configured", async () => {
    await expect.poll(() => run("toys")).toContain("bear blue\n");
    expect(JSON.parse(await run("toys", "--json"))).toContainEqual({ name: "bear", colour: "blue" });
    expect(await run("--help")).toContain("toys");
    expect(await run("config")).toMatch(/toy\.colour|ENGINE_TOY_COLOUR/);
  });

  test("has its sections in the generated documents, which are else the same", async () => {
    const [without, withToy] = await Promise.all([referenceDocs(FEATURES), referenceDocs([...FEATURES, TOY])]);
    const added = (name: string) => {
      const known = new Set(without[name]?.split("\n"));
      return withToy[name]?.split("\n").filter((line) => !known.has(line));
    };
    expect(added("configuration.md")).toEqual([
      "## Toys",
      expect.stringContaining("| `ENGINE_TOY_COLOUR` | `toy.colour` |"),
      expect.stringContaining("| `ENGINE_TOY_TIDY_MS` | `toy.tidy_ms` |"),
    ]);
    expect(added("metrics.md")).toEqual([
      "## Toys",
      expect.stringContaining("| `engine_toy_painted_total` | counter |"),
    ]);
    expect(added("cli.md")?.[0]).toBe("## engine toys");
  });

  test("cannot take a name that another feature has", async () => {
    const twice = [TOY, { ...TOY, name: "other" }];
    const { config } = loadConfig({ env: {} });
    await expect(optionRowsOf(twice)).rejects.toThrow("the features toy and other both have the option toyColour");
    expect(() => commandsOf(twice)).toThrow("the features toy and other both have the command toys");
    await expect(jobKindsOf(twice, config)).rejects.toThrow("two features have the kind of job toy.paint");
    expect(() => checkDeclared([TOYS, TOYS])).toThrow("two system tables are called system.toys");
    expect(() => checkDeclared([{ ...TOYS, name: "queries" }])).toThrow("two system tables are called system.queries");
    const rows = { own: { ...TOY_OPTIONS.toyColour, env: "ENGINE_HOME" } };
    expect(() => loadConfig({ env: {}, rows })).toThrow("two options are called ENGINE_HOME");
  });
});

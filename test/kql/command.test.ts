import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runChild, runOnTerminal } from "../../src/cli/cli.test-kit.ts";
import { PtyCommand } from "../../src/cli/pty.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { ingest } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** `engine kql`, against a server in a process of its own. */
let engine: Engine;
let removeHome: () => Promise<void>;
let env: Record<string, string>;
const folder = mkdtempSync(join(tmpdir(), "engine-kql-command-"));

beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home, env: { ENGINE_KQL_WARM: "true" } });
  env = { ENGINE_SERVER_URL: engine.url, ENGINE_HOME: home };
  await ingest(engine.url, "events", '{"at":"2024-05-01T12:00:00Z","label":"a"}');
  await ingest(engine.url, "other", '{"at":"2024-05-01T12:00:00Z","label":"b"}', { "X-Database": "logs" });
});

afterAll(async () => {
  await engine.stop();
  await removeHome();
  rmSync(folder, { recursive: true, force: true });
});

const kql = (argv: readonly string[], input = "") => runChild(["kql", ...argv], { env, input });

test("rows of a text, of a file, of standard input, and of another database", async () => {
  const file = join(folder, "query.kql");
  writeFileSync(file, "events\n| take 1");
  const first = await kql(["events | take 1"]);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(first.stdout)).toMatchObject({ at: "2024-05-01T12:00:00Z", label: "a" });
  expect((await kql(["-f", file])).stdout).toBe(first.stdout);
  expect((await kql(["-"], "events | take 1")).stdout).toBe(first.stdout);
  expect((await kql([], "events | take 1")).stdout).toBe(first.stdout);
  expect((await kql(["--db", "logs", "-o", "csv", "other | take 1"])).stdout).toContain("2024-05-01T12:00:00Z,b,");
});

test("a mistake is shown in the text", async () => {
  const { code, stdout, stderr } = await kql(["events\n| tak 1\n| take 2"]);
  expect([code, stdout]).toEqual([1, ""]);
  const lines = stderr.split("\n");
  expect(lines[0]).toMatch(/^error: .*\(line 2, column 3\)/);
  expect(stderr).toContain("  | tak 1\n    ^");
});

test("an unknown table is shown in the text, with the one that was meant", async () => {
  const { code, stderr } = await kql(["event | take 2"]);
  expect(code).toBe(1);
  expect(stderr).toContain("  event | take 2\n  ^");
  expect(stderr).toContain("events");
});

test("--explain shows the SQL and its plan", async () => {
  const plain = await kql(["--explain", "events | take 1"]);
  expect(plain).toMatchObject({ code: 0, stderr: "" });
  expect(plain.stdout).toMatch(/^(SELECT|WITH)\b/);
  expect(plain.stdout).toContain("─");
  expect(plain.stdout).toContain("table events at snapshot");
  const rows = (await kql(["--explain", "-o", "ndjson", "events | take 1"])).stdout.trimEnd().split("\n");
  const keys = rows.map((row) => (JSON.parse(row) as { explain_key: string }).explain_key);
  expect(keys).toEqual(["sql", "physical_plan", "extents"]);
});

test("a terminal gets a table", async () => {
  const { code, stdout } = await runOnTerminal(["kql", "print x = 1"], { env: { ...env, NO_COLOR: "1" }, columns: 40 });
  expect([code, stdout]).toEqual([0, expect.stringMatching(/x\n─+\n\s*1\n\(1 row\)/)]);
});

test.skipIf(lacks("python3"))("a terminal without a text is no shell", async () => {
  const command = new PtyCommand(["kql"], env);
  expect(await command.ended).toBe(2);
  expect(command.shown).toContain("give a query");
});

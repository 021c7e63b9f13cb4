import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually, freePort } from "../../src/core/waiting.test-kit.ts";
import { ingest, ndjson, rowsOf } from "../support/client.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** `engine tail` as a process of its own, against a server as one. */

const ENTRY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

let home: Awaited<ReturnType<typeof temporaryHome>>;
let engine: Engine;
let port: number;
const commands: Command[] = [];

/** It merges what comes, an extent for each request. */
const ENV = {
  ENGINE_COMPACTION_POLL_SECS: "1",
  ENGINE_COMPACTION_MIN_EXTENTS: "2",
  ENGINE_COMPACTION_IDLE_SLEEP_MS: "0",
  ENGINE_STAGING_DISABLED: "true",
};
const start = () => startEngine({ home: home.home, port, env: ENV });

beforeAll(async () => {
  home = await temporaryHome();
  port = await freePort();
  engine = await start();
}, 120_000);
afterEach(() => {
  for (const command of commands.splice(0)) command.child.kill("SIGKILL");
});
afterAll(async () => {
  await engine.stop("SIGKILL");
  await home.remove();
});

class Command {
  readonly child: ChildProcess;
  stdout = "";
  stderr = "";

  constructor(argv: readonly string[]) {
    const env = { ...cleanEnv(), ENGINE_SERVER_URL: `http://127.0.0.1:${port}`, ENGINE_HOME: home.home };
    this.child = spawn(process.execPath, [ENTRY, "tail", ...argv], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.stdout += text));
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    commands.push(this);
  }

  get lines(): string[] {
    return this.stdout.split("\n").slice(0, -1);
  }

  async until(count: number): Promise<string[]> {
    await eventually(() => this.lines.length >= count);
    return this.lines;
  }

  async exit(): Promise<number | null> {
    const [code] = (await once(this.child, "close")) as [number | null];
    return code;
  }
}

async function put(table: string, rows: readonly object[]): Promise<number> {
  const { status, text, json } = await ingest(engine.url, table, ndjson(rows));
  expect({ status, text }).toMatchObject({ status: 200 });
  return Number(json.snapshot_id);
}

/** Extents of the table that no merge has taken. */
async function unmerged(table: string): Promise<number> {
  const sql = `SELECT count(*) AS n FROM system.extents WHERE format = 'tlm' AND table_name = '${table}'`;
  const [row] = await rowsOf(engine.url, sql);
  return Number(row?.["n"]);
}

describe("engine tail", () => {
  it("prints rows as they come, as text or as the server's own JSON", async () => {
    const at = "2026-01-02T03:04:05.000000006Z";
    const first = await put("rows", [{ at, label: "first", big: 1 }]);
    const text = new Command(["rows", "--from", String(first - 1), "--where", "label <> 'no'"]);
    const json = new Command(["rows", "--json", "--from", String(first - 1)]);
    await Promise.all([text.until(1), json.until(1)]);
    await put("rows", [
      { at, label: "no" },
      { at, label: "two words", body: "x=\u001b[31m", big: 2 },
    ]);
    expect((await text.until(2)).slice(0, 2)).toEqual([
      `${at} label=first big=1`,
      `${at} label="two words" body="x=\\u001B[31m" big=2`,
    ]);
    expect((await json.until(3)).map((line) => (JSON.parse(line) as { label: string }).label)).toEqual([
      "first",
      "no",
      "two words",
    ]);
    expect([text.stderr, json.stderr]).toEqual(["", ""]);
  }, 120_000);

  it("goes on where it was when the server is killed and comes again, whatever was merged meanwhile", async () => {
    const first = await put("killed", [{ n: 0 }]);
    const command = new Command(["killed", "--json", "--from", String(first - 1)]);
    await command.until(1);
    await engine.stop("SIGKILL");
    // It reads nothing of what is merged before it goes on.
    command.child.kill("SIGSTOP");
    engine = await start();
    let rows = 1;
    for (let request = 0; request < 3; request++) await put("killed", [{ n: rows++ }, { n: rows++ }]);
    // Merges begin when the lease of the server that was killed has run out.
    await eventually(async () => (await unmerged("killed")) <= 1);
    command.child.kill("SIGCONT");
    await command.until(rows);
    // A row that came twice would come before one that is later.
    await put("killed", [{ n: rows++ }]);
    await command.until(rows);
    const numbers = command.lines.map((line) => (JSON.parse(line) as { n: string }).n);
    expect(numbers).toEqual(Array.from({ length: rows }, (_, n) => String(n)));
    expect(command.stderr).toMatch(/^warning: the connection to .* broke .*; trying again\n/);
  }, 180_000);

  it.each<[string, readonly string[], number, RegExp]>([
    ["no such table", ["nowhere"], 1, /there is no table "nowhere"/],
    ["a condition that is none", ["rows", "--where", "missing = 1"], 1, /missing/],
    ["a snapshot that is none", ["rows", "--from", "x"], 2, /--from is now or the number of a snapshot/],
    ["a name that no table has", ["no table"], 2, /table/],
    ["no server", ["rows", "--server", "http://127.0.0.1:1"], 1, /no engine answers/],
  ])("fails for %s", async (_what, argv, code, message) => {
    const command = new Command(argv);
    expect(await command.exit()).toBe(code);
    expect(command.stderr).toMatch(message);
    expect(command.stdout).toBe("");
  });

  it("ends with its table", async () => {
    await put("dropped", [{ n: 0 }]);
    const command = new Command(["dropped", "--json", "--from", "0"]);
    await command.until(1);
    expect((await fetch(`${engine.url}/v1/catalog/tables/dropped`, { method: "DELETE" })).status).toBe(200);
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe('error: the tail ended: the table "dropped" was dropped\n');
  });
});

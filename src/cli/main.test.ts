import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StartupError } from "../core/errors.ts";
import { runChild, runHere, runOnTerminal } from "./cli.test-kit.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "engine-cli-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const COMMANDS = [
  "serve",
  "server",
  "ingest push",
  "sql",
  "connect",
  "status",
  "config",
  "create-database",
  "create-table",
  "alter-table",
  "list-tables",
  "completions",
  "version",
];

describe("version", () => {
  test.for([["--version"], ["-V"], ["version"]])("%s prints it alone", async ([flag = ""]) => {
    expect(await runChild([flag])).toEqual({ code: 0, stdout: "1.2.3\n", stderr: "" });
  });

  test("is not what a command prints that has an option of the same name", async () => {
    const { code, stdout, stderr } = await runChild(["update", "--version", "0.0.1"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("git checkout v0.0.1");
  });

  test("version --json", async () => {
    expect(JSON.parse((await runChild(["version", "--json"])).stdout)).toEqual({
      version: "1.2.3",
      distribution: "checkout",
      platform: `${process.platform}-${process.arch}`,
      node: process.versions.node,
      duckdb: expect.stringMatching(/^v\d+\.\d+\.\d+$/),
      http_drivers: expect.arrayContaining(["node"]),
    });
  });
});

describe("help", () => {
  test.for([[["--help"]], [["help"]], [[]]] as const)("%j lists every command", async ([argv]) => {
    const { code, stdout, stderr } = await runOnTerminal(argv);
    expect(code).toBe(0);
    expect(stderr).toBe("");
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command.split(" ")[0]} `, "m"));
  });

  test.for(COMMANDS)("%s --help has examples", async (command) => {
    const { code, stdout } = await runOnTerminal([...command.split(" "), "--help"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/\nExamples:\n {2}.*engine /);
    expect(stdout).toContain(`Usage: engine ${command}`);
  });
});

describe("wrong usage exits with 2 and one line that names the help", () => {
  test.for([
    [["srve"], "error: unknown command 'srve' (Did you mean serve?); see `engine --help`"],
    [["connect"], "error: missing required argument 'url'; see `engine connect --help`"],
    [
      ["sql", "x", "--fromat", "csv"],
      "error: unknown option '--fromat' (Did you mean --format?); see `engine sql --help`",
    ],
    [["sql", "x", "y"], "error: too many arguments for 'sql'. Expected 1 argument but got 2"],
    [
      ["sql", "x", "--format", "xml"],
      "Allowed choices are table, json, ndjson, csv, tsv, markdown, arrow, parquet; see `engine sql --help`",
    ],
    [["ingest", "push"], "error: required option '--table <name>' not specified; see `engine ingest push --help`"],
    [["ingest", "psuh"], "error: unknown command 'psuh' (Did you mean push?); see `engine ingest --help`"],
    [["ingest"], "error: engine ingest needs a command; see `engine ingest --help`"],
    [["--wat"], "error: unknown option '--wat'; see `engine --help`"],
    [["completions", "tcsh"], "Allowed choices are bash, zsh, fish; see `engine completions --help`"],
    [["create-database", "a/b"], 'error: database name "a/b" must start with an ASCII letter'],
    [["sql", "SELECT 1", "--db", "_x"], "error: database name \"_x\" starts with '_', which is reserved"],
  ] as const)("%j", async ([argv, message]) => {
    const { code, stdout, stderr } = await runOnTerminal(argv, { env: { NO_COLOR: "1" } });
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr.trimEnd().split("\n").at(-1)).toContain(message);
  });
});

describe("serve and server", () => {
  test("pass on where to listen, the configuration and its warnings", async () => {
    const env = { ENGINE_LOCAL_HTTP_ADDR: "127.0.0.1:1", ENGINE_HTTP_ADDR: "0.0.0.0:2", ENGINE_FLUSH_MAX_ROW: "9" };
    const parsed = async (argv: readonly string[]) => {
      const { code, stdout, stderr } = await runChild(argv, { env });
      expect([code, stderr]).toEqual([0, ""]);
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    const served = await parsed(["serve"]);
    expect(served["listen"]).toEqual({ host: "127.0.0.1", port: 1 });
    expect(served["warnings"]).toEqual([
      "ENGINE_FLUSH_MAX_ROW is no option of this version and has no effect; did you mean ENGINE_FLUSH_MAX_ROWS?",
    ]);
    expect((await parsed(["server"]))["listen"]).toEqual({ host: "0.0.0.0", port: 2 });
    expect((await parsed(["serve", "--addr", "[::1]:3"]))["listen"]).toEqual({ host: "::1", port: 3 });
    expect((await parsed(["server", "--addr=h:4"]))["listen"]).toEqual({ host: "h", port: 4 });
  });

  test("--config names a file; the environment wins over it", async () => {
    const file = join(folder, "engine.toml");
    writeFileSync(file, "[server]\nport = 5\n[ingest]\nflush_max_rows = 6\n");
    const fromFile = JSON.parse((await runChild(["server", "--config", file])).stdout) as Record<string, unknown>;
    expect(fromFile).toMatchObject({ listen: { host: "0.0.0.0", port: 5 }, flushMaxRows: 6 });
    const env = { ENGINE_FLUSH_MAX_ROWS: "7" };
    expect(JSON.parse((await runChild(["server", "--config", file], { env })).stdout)).toMatchObject({
      flushMaxRows: 7,
    });
  });

  test.for([
    [
      ["serve"],
      { ENGINE_LOCAL_HTTP_ADDR: "nowhere" },
      'error: ENGINE_LOCAL_HTTP_ADDR is "nowhere"; expected HOST:PORT',
    ],
    [["serve", "--addr", "7777"], {}, 'error: --addr is "7777"; expected HOST:PORT'],
    [["serve", "--config", "/missing.toml"], {}, "error: --config: cannot read the configuration file: ENOENT"],
    [["config"], { ENGINE_TOKEN: "two words" }, 'error: ENGINE_TOKEN is "********"; expected'],
  ] as const)("a wrong configuration exits with 2: %j", async ([argv, env, message]) => {
    const { code, stdout, stderr } = await runChild(argv, { env: { ...env } });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
    expect(stderr.trimEnd()).not.toContain("\n");
  });
});

/** Runs `serve` with a role that fails. */
function failing(thrown: Error) {
  const serve = (): Promise<number> => {
    throw thrown;
  };
  return runHere(["serve"], { serve });
}

describe("when serving fails", () => {
  test("for a reason, that reason is all that is said", async () => {
    const taken = await failing(new StartupError("the port is in use", 1));
    expect(taken).toEqual({ code: 1, stdout: "", stderr: "error: the port is in use\n" });
    expect((await failing(new StartupError("no such option", 2))).code).toBe(2);
  });

  test("for a mistake of ours, its stack is shown", async () => {
    const { code, stderr } = await failing(new TypeError("x is undefined"));
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: x is undefined\nTypeError: x is undefined\n {4}at /);
  });

  test("the exit code of the role is passed on", async () => {
    expect((await runHere(["serve"], { serve: () => Promise.resolve(1) })).code).toBe(1);
  });
});

describe("config", () => {
  const env = { ENGINE_HOME: "/e", ENGINE_TOKEN: "hunter2", ENGINE_CATALOG_URL: "postgres://u:hunter2@db/e" };

  test("prints values and origins, without secrets", async () => {
    const { code, stdout, stderr } = await runChild(["config"], { env });
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^ENGINE_LOCAL_DATA +\/e\/data +default \(from ENGINE_HOME\)$/m);
    expect(stdout).toMatch(/^ENGINE_TOKEN +\*+ +ENGINE_TOKEN$/m);
    expect(stdout).toMatch(/^ENGINE_CATALOG_URL +postgres:\/\/u:\*+@db\/e +ENGINE_CATALOG_URL$/m);
    expect(stdout).toMatch(/^ENGINE_HTTP_ADDR +0\.0\.0\.0:8080 +default$/m);
    expect(stdout).not.toContain("hunter2");
  });

  test("as JSON", async () => {
    const { stdout } = await runChild(["config", "--json"], { env });
    expect(stdout).not.toContain("hunter2");
    const rows = JSON.parse(stdout) as { name: string; value: unknown; origin: string }[];
    expect(rows.find((row) => row.name === "flushMaxRows")).toEqual({
      name: "flushMaxRows",
      env: "ENGINE_FLUSH_MAX_ROWS",
      toml: "ingest.flush_max_rows",
      value: 8_000,
      origin: "default",
    });
  });

  test("warns of unknown variables on standard error", async () => {
    const { code, stderr } = await runChild(["config"], { env: { ENGINE_HOEM: "/e" } });
    expect(code).toBe(0);
    expect(stderr).toBe(
      "warning: ENGINE_HOEM is no option of this version and has no effect; did you mean ENGINE_HOME?\n",
    );
  });
});

describe("colour", () => {
  const red = "\u001b[31merror:\u001b[39m";

  test("on a terminal", async () => {
    expect((await runOnTerminal(["srve"])).stderr.startsWith(red)).toBe(true);
    expect((await runOnTerminal(["config"])).stdout).toContain("\u001b[1mOPTION");
  });

  test.for([{ NO_COLOR: "1" }, { TERM: "dumb" }])("not with %j", async (env) => {
    expect((await runOnTerminal(["srve"], { env })).stderr.startsWith("error: ")).toBe(true);
    expect((await runOnTerminal(["config"], { env })).stdout).not.toContain("\u001b");
  });

  test("an empty NO_COLOR is none", async () => {
    expect((await runOnTerminal(["srve"], { env: { NO_COLOR: "" } })).stderr.startsWith(red)).toBe(true);
  });

  test("not where nobody looks", async () => {
    expect((await runChild(["srve"])).stderr).not.toContain("\u001b");
  });
});

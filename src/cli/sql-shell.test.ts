import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { lacks } from "../core/gates.test-kit.ts";
import { startServer } from "./cli.test-kit.ts";
import { KEYS, PtyCommand } from "./pty.test-kit.ts";

const TREE = {
  databases: [
    {
      name: "default",
      tables: [
        {
          name: "requests",
          columns: [
            { name: "at", type: "timestamp" },
            { name: "pathname\u001b[2J", type: "string" },
            { name: "status", type: "long" },
          ],
          cluster_by: ["status"],
        },
      ],
    },
    { name: "logs", tables: [] },
  ],
};

type Asked = { text: string; database: string; gone: boolean };

/** A server with that schema, which answers as it is told; texts with `sleep` have no answer. */
async function shell(options: { home?: string; status?: number; argv?: readonly string[] } = {}) {
  const asked: Asked[] = [];
  const server = await startServer((request, body, response) => {
    if (options.status !== undefined) {
      response.writeHead(options.status).end(JSON.stringify({ error: { message: "no" } }));
      return;
    }
    if (request.url === "/v1/catalog/schema") {
      response.end(JSON.stringify(TREE));
      return;
    }
    const entry = { text: body.toString(), database: String(request.headers["x-database"]), gone: false };
    asked.push(entry);
    response.once("close", () => (entry.gone = !response.writableEnded));
    answer(entry.text, response);
  });
  onTestFinished(() => server.close());
  const home = options.home ?? temporaryHome();
  const env = { ENGINE_HOME: home, ENGINE_SERVER_URL: server.url };
  const terminal = new PtyCommand(["sql", ...(options.argv ?? [])], env);
  onTestFinished(() => terminal.close());
  return { asked, home, terminal, server };
}

function answer(text: string, response: ServerResponse): void {
  if (text.includes("sleep")) response.write("");
  else if (text.includes("wrong")) {
    const error = { message: "no column wrong\u001b[2J", line: 1, column: 8 };
    response.writeHead(400).end(JSON.stringify({ error }));
  } else response.end(`{"n":1,"s":"\\u001b[31mred"}\n`);
}

function temporaryHome(): string {
  const folder = mkdtempSync(join(tmpdir(), "shell-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

describe.skipIf(lacks("python3"))("a shell", () => {
  test("runs statements of many lines, and several on one; control characters are shown as such", async () => {
    const { terminal, asked } = await shell();
    await terminal.until("\\? for help");
    await terminal.until("default=> ");
    terminal.type("SELECT 1,\r");
    await terminal.until("default-> ");
    terminal.type("';\r");
    await terminal.until("default'> ");
    terminal.type("'; /* ;\r");
    const shown = await terminal.until("default'> ");
    expect(shown).toContain("\\u001b[31mred");
    terminal.type("*/ SELECT 2; SELECT 3;\r");
    await terminal.until("(1 row)");
    await terminal.until("(1 row)");
    await terminal.until("default=> ");
    expect(asked.map(({ text }) => text.trim())).toEqual(["SELECT 1,\n';\n'", "SELECT 2", "SELECT 3"]);
    terminal.type(KEYS.ctrlD);
    expect(await terminal.ended).toBe(0);
  });

  test("goes on after an error, and shows its place", async () => {
    const { terminal } = await shell();
    terminal.type("SELECT wrong;\r");
    await terminal.until("error: no column wrong\\u001b[2J (line 1, column 8)");
    await terminal.until("         ^");
    await terminal.until("default=> ");
    terminal.type("SELECT 1;\rexit;\r");
    await terminal.until("(1 row)");
    expect(await terminal.ended).toBe(0);
  });

  test("cancels what runs by Ctrl-C, with all that was typed behind it", async () => {
    const { terminal, asked } = await shell();
    await terminal.until("default=> ");
    terminal.type("SELECT sleep; SELECT 2;\rSELECT 3;\r");
    await expect.poll(() => asked.length).toBe(1);
    terminal.type(KEYS.ctrlC);
    await terminal.until("cancelled");
    await terminal.until("default=> ");
    await expect.poll(() => asked[0]?.gone).toBe(true);
    terminal.type("SELECT 4;\r");
    await terminal.until("(1 row)");
    expect(asked.map(({ text }) => text.trim())).toEqual(["SELECT sleep", "SELECT 4"]);
  });

  test("clears what is typed by Ctrl-C, lines above it too", async () => {
    const { terminal, asked } = await shell();
    await terminal.until("default=> ");
    terminal.type("SELECT 'open\r");
    await terminal.until("default'> ");
    terminal.type(`more${KEYS.ctrlC}`);
    await terminal.until("^C");
    await terminal.until("default=> ");
    terminal.type("SELECT 1;\r");
    await terminal.until("(1 row)");
    expect(asked.map(({ text }) => text)).toEqual(["SELECT 1"]);
  });

  test("ends by Ctrl-D, and gives up what runs", async () => {
    const { terminal, asked } = await shell();
    await terminal.until("default=> ");
    terminal.type("SELECT sleep;\r");
    await expect.poll(() => asked.length).toBe(1);
    terminal.type(KEYS.ctrlD);
    expect(await terminal.ended).toBe(0);
    await expect.poll(() => asked[0]?.gone).toBe(true);
  });

  test("knows its commands", async () => {
    const { terminal, asked } = await shell();
    const say = async (line: string) => {
      terminal.type(`${line}\r`);
      await terminal.until(line);
      return (await terminal.until("=> ")).replaceAll("\r\n", "\n");
    };
    await terminal.until("default=> ");
    expect(await say("\\d")).toMatch(/TABLE +COLUMNS\n.+\nrequests +3\n/);
    const columns = await say("\\d requests");
    expect(columns).toContain("pathname\\u001b[2J  string");
    expect(columns).toContain("clustered by status");
    expect(await say("\\d request")).toContain("there is no table request in default; did you mean requests?");
    expect(await say("\\l")).toMatch(/default +1\nlogs +0\n/);
    expect(await say("\\wat")).toContain("there is no command \\wat; \\? shows them");
    expect(await say("\\?")).toContain("\\timing [on|off]");
    expect(await say("\\timing")).toContain("timing is on");
    expect(await say("\\format parquet")).toContain("parquet is no format that a terminal shows");
    await say("\\format tsv");
    const timed = await say("SELECT 1;");
    expect(timed).toMatch(/n\ts\n1\t\\u001b\[31mred\ntime: [\d.]+ ms\n/);
    expect(await say("\\c LOGS")).toContain("logs=> ");
    await say("SELECT 2;");
    expect(asked.map(({ database }) => database)).toEqual(["default", "logs"]);
    terminal.type("\\q\r");
    expect(await terminal.ended).toBe(0);
  });

  test("completes names and keywords by Tab", async () => {
    const { terminal, asked } = await shell();
    await terminal.until("default=> ");
    for (const part of ["SEL", " sta", " FROM req"]) {
      terminal.type(part);
      terminal.type(KEYS.tab);
      // The answer takes a turn, and keys that are pasted are no Tab.
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    terminal.type(";\r");
    await terminal.until("(1 row)");
    expect(asked.map(({ text }) => text)).toEqual(["SELECT sta FROM requests"]);
  });

  test("remembers what was typed, in a file for its user alone", async () => {
    const first = await shell();
    await first.terminal.until("default=> ");
    first.terminal.type("SELECT 1,\r2;\r");
    await first.terminal.until("(1 row)");
    first.terminal.type(" SELECT 'secret';\r");
    await first.terminal.until("(1 row)");
    first.terminal.type(KEYS.ctrlD);
    await first.terminal.ended;
    const file = join(first.home, "sql_history");
    expect(readFileSync(file, "utf8")).toBe("SELECT 1, 2;\n");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const second = await shell({ home: first.home });
    await second.terminal.until("default=> ");
    second.terminal.type(KEYS.up);
    await second.terminal.until("SELECT 1, 2;");
    second.terminal.type(KEYS.enter);
    await second.terminal.until("(1 row)");
    expect(second.asked.map(({ text }) => text)).toEqual(["SELECT 1, 2"]);
  });

  test("does not begin without a server, or a token for it", async () => {
    const refused = await shell({ status: 401 });
    expect(await refused.terminal.ended).toBe(4);
    expect(refused.terminal.shown).toContain("error: the server wants a token");
    const binary = await shell({ argv: ["-o", "arrow"] });
    expect(await binary.terminal.ended).toBe(2);
    expect(binary.terminal.shown).toContain("arrow is not for a terminal");
  });
});

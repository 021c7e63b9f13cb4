import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { KEYS, PtyCommand } from "../../src/cli/pty.test-kit.ts";
import { ingest, query } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

let engine: Engine;
let removeHome: () => Promise<void>;
beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home });
  await ingest(engine.url, "requests", '{"path":"/a","status":200}\n{"path":"/b","status":404}');
});
afterAll(async () => {
  await engine.stop();
  await removeHome();
});

/** What became of the queries whose text has that in it. */
async function outcomesOf(part: string): Promise<unknown[]> {
  const { text } = await query(engine.url, "SELECT text, outcome FROM system.queries");
  const rows = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { text: string; outcome: string });
  return rows
    .filter((row) => row.text.includes(part) && !row.text.includes("system.queries"))
    .map(({ outcome }) => outcome);
}

describe.skipIf(lacks("python3"))("the shell and a server", () => {
  test("a session: names from the catalog, places of errors, and a query that Ctrl-C ends on the server too", async () => {
    const { home, remove } = await temporaryHome();
    const terminal = new PtyCommand(["sql"], { ENGINE_HOME: home, ENGINE_SERVER_URL: engine.url });
    try {
      await terminal.until("default=> ");
      terminal.type("\\d requests\r");
      await terminal.until("props ");
      await terminal.until("status  string");
      await terminal.until("default=> ");
      terminal.type("SELECT path\rFROM requests ORDER BY at, path;\r");
      await terminal.until("/b");
      await terminal.until("(2 rows)");
      await terminal.until("default=> ");
      terminal.type("SELECT 1,\rnope FROM requests;\r");
      await terminal.until("(line 2, column 1)");
      await terminal.until("default=> ");
      terminal.type("SELECT count(*) FROM range(100000000000) t(i), range(1000) u(j) WHERE i * j % 7 = 3;\r");
      await expect.poll(() => outcomesOf("u(j)")).toEqual(["running"]);
      terminal.type(KEYS.ctrlC);
      await terminal.until("cancelled");
      await expect.poll(() => outcomesOf("u(j)")).toEqual(["cancelled"]);
      terminal.type(KEYS.ctrlD);
      expect(await terminal.ended).toBe(0);
    } finally {
      terminal.close();
      await remove();
    }
  });
});

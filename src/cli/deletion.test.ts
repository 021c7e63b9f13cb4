import { PassThrough } from "node:stream";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../core/clock.ts";
import { systemRandom } from "../core/random.ts";
import type { CliInput } from "../client/context.ts";
import { features, runHere } from "./cli.test-kit.ts";
import { runCli } from "./main.ts";

/** The commands that delete, against a server that only writes down what it is asked. */
type Asked = { method: string; path: string; database: unknown; body: unknown };

let url: string;
let asked: Asked[];
let close: () => void;
/** How the deletion ends that the server is asked for. */
let status: "done" | "failed";

beforeEach(async () => {
  asked = [];
  status = "done";
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const { method = "", url: path = "" } = request;
      asked.push({ method, path, database: request.headers["x-database"], body });
      if (path.endsWith("/events")) {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end("event: end\ndata: {}\n\n");
        return;
      }
      response.writeHead(200, { "content-type": "application/json" });
      const deletion = { id: "d1", status, rows: 3, snapshot_id: 12, error: status === "failed" ? "no cast" : null };
      const counted = { rows: 3, extents: 2, extents_total: 9, tables: 2 };
      const isDry = (body as { dry_run?: boolean } | undefined)?.dry_run === true;
      response.end(JSON.stringify(isDry || method === "DELETE" ? counted : deletion));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = () => server.close();
});
afterEach(() => close());

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return text === "" ? undefined : JSON.parse(text);
}

const run = (...argv: string[]) => runHere([...argv, "--server", url], { env: {} });

/** At a terminal where that is typed at the first question. */
async function typed(answer: string, ...argv: string[]) {
  const stdin: CliInput = Object.assign(new PassThrough(), { isTTY: true });
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const shown = { stdout: "", stderr: "" };
  stdout.on("data", (chunk: Buffer) => (shown.stdout += chunk.toString()));
  let isAsked = false;
  stderr.on("data", (chunk: Buffer) => {
    shown.stderr += chunk.toString();
    if (isAsked || !/(?:: |\] )$/.test(shown.stderr)) return;
    isAsked = true;
    (stdin as PassThrough).write(`${answer}\r`);
  });
  const migrations = () => Promise.resolve([]);
  const deps = {
    features,
    migrations,
    serve: () => Promise.resolve(0),
    version: "0",
    env: {},
    clock: systemClock,
    random: systemRandom,
  };
  const code = await runCli([...argv, "--server", url], { ...deps, stdin, stdout, stderr });
  return { code, ...shown };
}

test("drop-table asks for the name again, and drops with --yes", async () => {
  const wrong = await typed("line", "drop-table", "--db", "logs", "--table", "lines");
  expect([wrong.code, asked]).toEqual([1, []]);
  expect(wrong.stderr).toContain("Drop the table logs.lines and all its rows? Type lines to go on: ");
  expect(wrong.stderr).toContain("nothing was changed");
  expect((await typed("lines", "drop-table", "--db", "logs", "--table", "lines")).stdout).toBe(
    "table logs.lines dropped: 3 rows\n",
  );
  expect(asked).toEqual([{ method: "DELETE", path: "/v1/catalog/tables/lines", database: "logs", body: undefined }]);
  const piped = await run("drop-table", "--table", "lines");
  expect([piped.code, piped.stderr]).toEqual([2, "error: standard input is no terminal; say --yes\n"]);
  expect((await run("drop-table", "--table", "lines", "--yes", "--json")).code).toBe(0);
  expect((await run("drop-table", "--table", "../x", "--yes")).code).not.toBe(0);
  expect(asked).toHaveLength(2);
});

test("drop-database asks for the name again, and drops with --yes", async () => {
  expect((await typed("y", "drop-database", "logs")).code).toBe(1);
  expect(asked).toEqual([]);
  expect((await run("drop-database", "logs", "--yes")).stdout).toBe("database logs dropped: 2 tables, 3 rows\n");
  expect(asked).toMatchObject([{ method: "DELETE", path: "/v1/catalog/databases/logs" }]);
});

test("delete-rows counts, asks, and waits for the end", async () => {
  const where = "who = 'ann' AND n > 3";
  const dry = await run("delete-rows", "--table", "t", "--where", where, "--dry-run");
  expect(dry.stdout).toBe("3 rows of default.t would be deleted, in 2 of 9 extents\n");
  expect(asked).toMatchObject([
    { path: "/v1/catalog/tables/t/delete", database: "default", body: { where, dry_run: true } },
  ]);
  const no = await typed("n", "delete-rows", "--table", "t", "--where", where);
  expect(no.stderr).toContain("3 rows of default.t would be deleted, in 2 of 9 extents. Delete them for ever? [y/N] ");
  expect([no.code, asked.length]).toEqual([1, 2]);
  const yes = await typed("y", "delete-rows", "--table", "t", "--where", where);
  expect(yes.stdout).toBe("3 rows deleted at snapshot 12; the report is deletion d1\n");
  expect(asked.slice(3).map(({ method, path }) => `${method} ${path}`)).toEqual([
    "POST /v1/catalog/tables/t/delete",
    "GET /v1/jobs/d1/events",
    "GET /v1/catalog/deletions/d1",
  ]);
  expect(asked[3]).toMatchObject({ body: { where, dry_run: false } });
  expect((await run("delete-rows", "--table", "t", "--where", where, "--yes", "--no-wait")).stdout).toBe("d1\n");
  status = "failed";
  const failed = await run("delete-rows", "--table", "t", "--where", where, "--yes");
  expect([failed.code, failed.stderr]).toEqual([1, "error: nothing was deleted: no cast\n"]);
});

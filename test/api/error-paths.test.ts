import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ingest, ndjson, query } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

/** What fails inside a server is for its log: no answer says where the server keeps its files. */
let engine: Engine;
let home: string;
let remove: () => Promise<void>;

const ROWS = ndjson(Array.from({ length: 5_000 }, (_, n) => ({ body: `row ${n}`, n })));

async function begin(env: Record<string, string> = {}): Promise<void> {
  engine = await startEngine({ home, env });
  for (let i = 0; i < 3; i++) expect((await ingest(engine.url, "t", ROWS)).status).toBe(200);
}

beforeEach(async () => void ({ home, remove } = await temporaryHome()));
afterEach(async () => {
  await engine.stop("SIGKILL");
  await remove();
});

/** Files below a folder. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

type Said = { status: number; text: string; requestId: string };

/** Asks for everything that touches files, and says what failed. */
async function failures(): Promise<Said[]> {
  const texts = [
    "SELECT count(*), max(n) FROM t",
    "SELECT body FROM t WHERE n = 7 ORDER BY at DESC LIMIT 3",
    "SELECT a.n FROM t a JOIN t b ON a.n = b.n ORDER BY a.body LIMIT 1",
    "SELECT * FROM system.extents",
    "EXPLAIN ANALYZE SELECT * FROM t",
  ];
  const answers = [
    ...(await Promise.all(texts.map((text) => query(engine.url, text)))),
    await query(engine.url, "SELECT * FROM t", { Accept: "application/vnd.apache.parquet" }),
    await ingest(engine.url, "t", ROWS),
    await ingest(engine.url, "another", ROWS),
  ].map(({ status, text, headers }) => ({ status, text, requestId: headers.get("x-request-id") ?? "" }));
  const begun = await fetch(`${engine.url}/v1/exports`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ query: "SELECT * FROM t", database: "default" }),
  });
  const { id } = (await begun.json()) as { id: string };
  let shown = "";
  await eventually(async () => {
    shown = await (await fetch(`${engine.url}/v1/jobs/${id}`)).text();
    return /"error":"|"status":"(?:done|failed)"/.test(shown);
  });
  const isFine = /"status":"done"/.test(shown);
  const exported = { status: isFine ? 200 : 500, text: shown, requestId: "" };
  return [...answers, exported].filter(({ status }) => status >= 400);
}

/** `withheld`: how many of them the log alone explains, at least. */
function checkFailures(said: readonly Said[], least: { failures: number; withheld: number }): void {
  expect(said.length).toBeGreaterThanOrEqual(least.failures);
  for (const { text, requestId } of said) {
    expect(text).not.toContain("/tmp/");
    if (!text.includes("the log has it under")) continue;
    expect(text).toContain(requestId);
    const lines = engine.log().split("\n");
    expect(lines.filter((line) => line.includes(`"requestId":"${requestId}"`)).join("\n")).toContain(home);
  }
  const withheld = said.filter(({ text }) => text.includes("unexpected failure"));
  expect(withheld.length).toBeGreaterThanOrEqual(least.withheld);
}

describe("no answer names a place in the server's file system", () => {
  test("when extents are gone", async () => {
    await begin();
    for (const file of await filesIn(join(home, "data"))) await rm(file);
    checkFailures(await failures(), { failures: 4, withheld: 0 });
  });

  test("when extents are folders", async () => {
    await begin();
    for (const file of await filesIn(join(home, "data"))) {
      await rm(file);
      await mkdir(file);
    }
    checkFailures(await failures(), { failures: 4, withheld: 0 });
  });

  test("when extents are damaged, in both formats", async () => {
    await begin({ ENGINE_COMPACTION_MIN_EXTENTS: "2", ENGINE_COMPACTION_POLL_SECS: "1" });
    const isMerged = async () =>
      /_merges_total\{outcome="published"\} [1-9]/.test(await (await fetch(`${engine.url}/metrics`)).text());
    await eventually(isMerged);
    for (const file of await filesIn(join(home, "data"))) await writeFile(file, "not what it was ".repeat(50_000));
    checkFailures(await failures(), { failures: 3, withheld: 1 });
  });

  test("when the data folder, and that of temporary files, are files", async () => {
    await begin();
    for (const name of ["data", "tmp"]) {
      await rename(join(home, name), join(home, `${name}.away`));
      await writeFile(join(home, name), "");
    }
    checkFailures(await failures(), { failures: 6, withheld: 2 });
  });
});

import { globSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { expect } from "vitest";
import { ingest, query, rowsOf } from "../support/client.ts";
import { startEngine, type Engine } from "../support/engine.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

const COUNT = "SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM t";
const KEY = { "X-Idempotency-Key": "before-the-backup" };
const LATER_KEY = { "X-Idempotency-Key": "after-the-backup" };

/** Starts a server that gets rows all the time, and merges them. */
export async function startLoaded(home: string, env: Readonly<Record<string, string>>) {
  const merging = { ENGINE_COMPACTION_POLL_SECS: "1", ENGINE_COMPACTION_MIN_EXTENTS: "4" };
  const engine = await startEngine({ home, env: { ...merging, ...env } });
  await ingest(engine.url, "t", '{"id":"keyed"}\n', KEY);
  const state = { isRunning: true, sent: 1, acknowledged: 1 };
  const loaded = (async () => {
    while (state.isRunning) {
      const { status, text } = await ingest(engine.url, "t", `{"id":"${state.sent++}"}\n`);
      if (status !== 200) throw new Error(`ingest: ${status} ${text}`);
      state.acknowledged++;
    }
  })();
  await eventually(() => state.acknowledged > 50);
  return { engine, state, stop: () => ((state.isRunning = false), loaded) };
}

export type Loaded = Awaited<ReturnType<typeof startLoaded>>;

/** Makes a backup of a loaded server, lets it go on, and stops it. Returns the bounds of what the backup has. */
export async function backUp({ engine, state, stop }: Loaded, run: () => void) {
  const least = state.acknowledged;
  run();
  const most = state.sent;
  await eventually(() => state.acknowledged > most + 20);
  await stop();
  const late = await ingest(engine.url, "t", '{"id":"late"}\n', LATER_KEY);
  expect((await engine.stop()).code).toBe(0);
  return { least, most, lastSnapshot: Number(late.json.snapshot_id) };
}

/** What the documents say of a server that was started on a backup. */
export async function checkRestored(engine: Engine, bounds: Awaited<ReturnType<typeof backUp>>): Promise<void> {
  const [counted] = await rowsOf(engine.url, COUNT);
  const rows = Number(counted?.["rows"]);
  expect(rows).toBeGreaterThanOrEqual(bounds.least);
  expect(rows).toBeLessThanOrEqual(bounds.most);
  expect(counted).toEqual({ rows, ids: rows });
  expect(await rowsOf(engine.url, "SELECT id FROM t WHERE id = 'late'")).toEqual([]);
  await isSound(engine);
  // A key from before holds; one from after is forgotten, and so are the numbers of later snapshots.
  expect((await ingest(engine.url, "t", '{"id":"keyed"}\n', KEY)).json.replayed).toBe(true);
  const again = await ingest(engine.url, "t", '{"id":"late"}\n', LATER_KEY);
  expect(again.json.replayed).toBe(false);
  expect(Number(again.json.snapshot_id)).toBeLessThanOrEqual(bounds.lastSnapshot);
  expect(await rowsOf(engine.url, COUNT)).toEqual([{ rows: rows + 1, ids: rows + 1 }]);
}

/** Every extent is there, with the bytes that the catalog knows. */
async function isSound(engine: Engine): Promise<void> {
  const payload = { database: "default", table: "t" };
  const job = { kind: "maintenance.verify_extents", database: "default", payload };
  const headers = { "Content-Type": "application/json" };
  const made = await fetch(`${engine.url}/v1/jobs`, { method: "POST", headers, body: JSON.stringify(job) });
  const { job_id: id }: { job_id: string } = JSON.parse(await made.text());
  let seen: Record<string, unknown> = {};
  await eventually(async () => {
    seen = JSON.parse(await (await fetch(`${engine.url}/v1/jobs/${id}`)).text());
    return seen["status"] === "done" || seen["status"] === "failed";
  });
  expect(seen).toMatchObject({ status: "done", result: { ok: true } });
}

/** An extent that is missing after a restore: the query fails and names it. */
export async function checkMissingExtent(engine: Engine, home: string): Promise<void> {
  await ingest(engine.url, "lost", '{"id":"x"}\n');
  const [file = ""] = globSync(join(home, "data/**/lost/**/*.tlm"));
  rmSync(file);
  const { status, text } = await query(engine.url, "SELECT id FROM lost");
  expect(status).toBeGreaterThanOrEqual(500);
  expect(text).toContain(basename(file, ".tlm"));
}

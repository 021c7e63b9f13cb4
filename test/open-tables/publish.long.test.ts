import { afterEach, expect, test } from "vitest";
import { delay, eventually } from "../../src/core/waiting.test-kit.ts";
import type { Json } from "../api/services.test-kit.ts";
import { ndjson } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const PATH = "/v1/admin/databases/default/tables/killed";
const HEADERS = { "X-Table": "killed", "Content-Type": "application/x-ndjson" };
const post = (url: string, path: string, body?: string) =>
  fetch(url + path, { method: "POST", ...(body === undefined ? {} : { body, headers: HEADERS }) });
const described = async (url: string) => {
  const { row_count: rows, unpublished_rows: unpublished } = (await (await fetch(url + PATH)).json()) as Json;
  return [rows, unpublished];
};

test("a server that is killed meanwhile loses nothing, and publishes all of it when it is back", async () => {
  const { home, remove } = await temporaryHome();
  closers.push(remove);
  const env = { ENGINE_COMPACTION_POLL_SECS: "86400" };
  const first = await startEngine({ home, env });
  closers.push(() => first.stop("SIGKILL"));
  const rows = Array.from({ length: 2_000 }, (_, n) => ({ n, text: `row ${n}` }));
  for (let i = 0; i < 5; i++) await post(first.url, "/v1/ingest", ndjson(rows));
  const asked = post(first.url, `${PATH}/publish`).catch(() => undefined);
  // About when the merge runs.
  await delay(300);
  await first.stop("SIGKILL");
  await asked;
  const second = await startEngine({ home, env });
  closers.push(() => second.stop("SIGKILL"));
  // The lease of the one that is gone has to end first.
  await eventually(async () => (await post(second.url, `${PATH}/publish`)).status === 200, 120_000);
  expect(await described(second.url)).toEqual([10_000, 0]);
}, 240_000);

test("a rewrite that is cancelled stops soon, leaves all rows readable, and goes on when it is run again", async () => {
  const { home, remove } = await temporaryHome();
  closers.push(remove);
  const env = {
    ENGINE_COMPACTION_POLL_SECS: "86400",
    ENGINE_WRITE_FORMAT: "parquet",
    // Between two merges there is time to cancel.
    ENGINE_COMPACTION_IDLE_SLEEP_MS: "3000",
  };
  const engine = await startEngine({ home, env });
  closers.push(() => engine.stop("SIGKILL"));
  // A flush that brings a column is Parquet of version 1, and each day is a merge of its own.
  for (let day = 10; day < 10 + DAYS; day++) {
    await post(engine.url, "/v1/ingest", ndjson([{ at: `2024-01-${day}T12:00:00Z`, [`c${day}`]: "x" }]));
  }
  expect(await described(engine.url)).toEqual([DAYS, DAYS]);
  const payload = { database: "default", table: "killed" };
  const job = { kind: "maintenance.rewrite_extents", database: "default", payload };
  const json = async (method: string, path: string, body?: Json) => {
    const headers = { "Content-Type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body), headers };
    return (await (await fetch(engine.url + path, { method, ...sent })).json()) as Json;
  };
  const { job_id: id } = await json("POST", "/v1/jobs", job);
  const path = `/v1/jobs/${String(id)}`;
  await eventually(async () => Number((await described(engine.url))[1]) < DAYS);
  await json("POST", `${path}/cancel`);
  await eventually(async () => (await json("GET", path))["status"] === "cancelled", 10_000);
  await delay(11_000);
  const left = Number((await described(engine.url))[1]);
  await delay(7_000);
  // Two more merges would have been done by now.
  expect(await described(engine.url)).toEqual([DAYS, left]);
  expect(left).toBeGreaterThan(0);
  const query = await fetch(`${engine.url}/v1/query`, { method: "POST", body: "SELECT count(*) AS n FROM killed" });
  expect(await query.text()).toContain(String(DAYS));
  const { metadata } = await json("GET", "/iceberg/v1/namespaces/default/tables/killed");
  const { snapshots } = metadata as { snapshots: { summary: Record<string, string> }[] };
  expect(snapshots.at(-1)?.summary).toMatchObject({
    "total-records": String(DAYS - left),
    "engine.pending-rows": String(left),
  });
  await json("POST", `${path}/retry`);
  await eventually(async () => (await json("GET", path))["status"] === "done", 120_000);
  expect((await json("GET", path))["result"]).toMatchObject({ extents: left, rows: left });
  expect(await described(engine.url)).toEqual([DAYS, 0]);
}, 240_000);

const DAYS = 12;

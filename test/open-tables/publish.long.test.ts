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

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startServices } from "../edge/run.test-kit.ts";
import { ingest, query, rowsOf } from "../support/client.ts";
import { temporaryHome } from "../support/engine.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

/** `system.staged`, of servers with and without a committer. */

const STAGED = "SELECT * EXCLUDE (staged_at), staged_at > '2024-01-01' AS dated FROM system.staged ORDER BY state, id";

let home: string;
const closers: (() => Promise<void>)[] = [];

beforeEach(async () => {
  const made = await temporaryHome();
  home = made.home;
  closers.push(made.remove);
});

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** A server with a table `t`, once its first query process is there: on a machine with much to do that takes a while. */
async function start(env: Record<string, string>): Promise<{ url: string; stop: () => Promise<void> }> {
  const services = await startServices({ ...env, ENGINE_HOME: home });
  closers.push(() => services.stop());
  const { url } = services;
  const made = await fetch(`${url}/v1/admin/databases/default/tables/t`, { method: "POST" });
  expect(made.status).toBe(200);
  await eventually(async () => (await query(url, "SELECT 1 AS one")).status === 200);
  return services;
}

test("shows what is staged and, with its reason, what was set aside as damaged", async () => {
  const staged = { ENGINE_INGEST_MODE: "staged" };
  const { url, stop } = await start({ ...staged, ENGINE_ROLES: "query,ingest" });
  expect(await rowsOf(url, STAGED)).toEqual([]);
  for (let i = 0; i < 2; i++) expect((await ingest(url, "t", '{"body":"x"}')).json).toMatchObject({ staged: true });
  const pending = await rowsOf(url, STAGED);
  const [{ node } = {}] = pending;
  const one = { state: "pending", node, key: expect.stringMatching(`^engine/_staged/${String(node)}/`) as string };
  const id = expect.stringMatching(/^[0-9a-f-]{36}$/) as string;
  const row = { ...one, id, size_bytes: expect.any(Number) as number, reason: null, dated: true };
  expect(pending).toEqual([row, row]);
  expect(await rowsOf(url, "SELECT count(*) AS n FROM t")).toEqual([{ n: 0 }]);
  const garbage = "0190a000-0000-7000-8000-000000000001";
  await mkdir(join(home, "data/engine/_staged/broken"), { recursive: true });
  await writeFile(join(home, "data/engine/_staged/broken", garbage), "these bytes are none of ours");
  expect(await rowsOf(url, STAGED)).toHaveLength(3);
  await stop();

  const whole = await start({ ...staged, ENGINE_ROLES: "all_in_one" });
  await eventually(async () => (await rowsOf(whole.url, "SELECT count(*) AS n FROM t"))[0]?.["n"] === 2);
  await eventually(async () => (await rowsOf(whole.url, STAGED)).length === 1);
  expect(await rowsOf(whole.url, STAGED)).toEqual([
    {
      state: "damaged",
      node: "broken",
      id: garbage,
      key: `engine/_damaged/broken/${garbage}`,
      size_bytes: 28,
      reason: "it does not start like a staged object",
      dated: true,
    },
  ]);
});

test("is empty where nothing was ever staged", async () => {
  const { url } = await start({ ENGINE_ROLES: "all_in_one" });
  expect(await rowsOf(url, STAGED)).toEqual([]);
});

import { MIGRATIONS } from "../../../catalog/migrations.test-kit.ts";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openSqliteCatalog } from "../../../catalog/sqlite/sqlite.ts";
import { systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { EVENT_SIZE } from "./quota.ts";

const ID = "0198a000-0000-7000-8000-000000000001";
const QUOTA = 256 * 1024;
const CHILD = fileURLToPath(new URL("./append-child.test-kit.ts", import.meta.url));

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "engine-event-quota-"))));
afterEach(() => rm(folder, { recursive: true }));

/** Lets a process write until it has said so many times that it has, and kills it. Resolves to what it said last. */
async function writeAndKill(path: string, times: number): Promise<number> {
  const argv = ["--disable-warning=ExperimentalWarning", CHILD, path, ID, String(QUOTA)];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "inherit"] });
  let [said, last] = [0, 0];
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (text) => {
    last = Number(text);
    if (++said === times) child.kill("SIGKILL");
  });
  await once(child, "close");
  expect(said).toBeGreaterThanOrEqual(times);
  return last;
}

it("the count is that of the events that are there, wherever a process was killed", async () => {
  const path = join(folder, "catalog.db");
  let cut = 0;
  for (const times of [1, 9, 40]) {
    const acknowledged = await writeAndKill(path, times);
    const catalog = await openSqliteCatalog({
      path,
      clock: systemClock,
      log: silentLog,
      migrations: MIGRATIONS,
      mode: "server",
    });
    const [row] = await catalog.records.rows("SELECT first_seq, last_seq, events_bytes, cut_bytes FROM sandboxes");
    const sql = `SELECT count(*) AS n, min(seq) AS first, max(seq) AS last, sum(${EVENT_SIZE}) AS bytes FROM sandbox_events`;
    const [kept] = await catalog.records.rows(sql);
    await catalog.close();
    expect(row).toMatchObject({ first_seq: kept?.["first"], last_seq: kept?.["last"], events_bytes: kept?.["bytes"] });
    expect(Number(kept?.["n"])).toBe(Number(row?.["last_seq"]) - Number(row?.["first_seq"]) + 1);
    expect(Number(row?.["last_seq"])).toBeGreaterThanOrEqual(acknowledged);
    expect(Number(row?.["events_bytes"])).toBeLessThanOrEqual(QUOTA);
    expect(Number(row?.["cut_bytes"])).toBeGreaterThanOrEqual(cut);
    cut = Number(row?.["cut_bytes"]);
  }
  expect(cut).toBeGreaterThan(QUOTA);
});

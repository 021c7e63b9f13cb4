import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ndjson } from "../support/client.ts";
import { cleanEnv } from "../support/engine.ts";
import { CalledServices } from "./services.test-kit.ts";

/**
 * One server with all roles does a little of everything; then `GET /metrics` has told of it. What only faults move
 * (retries, given-up operations, lost connections) is tested beside the code that counts it.
 */

let services: CalledServices<"admin">;

beforeAll(async () => {
  services = await CalledServices.start([["admin", "admin"]], {
    ENGINE_COMPACTION_MIN_EXTENTS: "2",
    ENGINE_COMPACTION_POLL_SECS: "1",
    ENGINE_PHYSICAL_GC_GRACE_SECS: "1",
    ENGINE_PHYSICAL_GC_POLL_SECS: "1",
    ENGINE_RETENTION_POLL_SECS: "1",
  });
}, 120_000);
afterAll(() => services.close());

/** A command beside the server, on its catalog. */
async function engine(...args: readonly string[]): Promise<void> {
  const { home } = services;
  const env = { ...cleanEnv(), ENGINE_HOME: home, ENGINE_CATALOG_URL: `sqlite://${join(home, "catalog.db")}` };
  const program = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
  await promisify(execFile)(process.execPath, [program, ...args], { env });
}

async function scrape(): Promise<Map<string, number>> {
  const text = await (await services.send("admin", "GET", "/metrics")).text();
  const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    samples.map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

async function ingest(table: string, rows: readonly Record<string, unknown>[], key?: string): Promise<number> {
  const headers = { "X-Table": table, "Content-Type": "application/x-ndjson" };
  const more: Record<string, string> = key === undefined ? {} : { "X-Idempotency-Key": key };
  const answer = await services.send("admin", "POST", "/v1/ingest", ndjson(rows), { ...headers, ...more });
  return answer.status;
}

/** After rows came three times, were read, merged, deleted; one table has outlived its retention. */
const EXPECTED: readonly [sample: string, least: number][] = [
  ['engine_ingest_requests_total{outcome="committed"}', 4],
  ['engine_ingest_requests_total{outcome="replayed"}', 1],
  ['engine_ingest_requests_total{outcome="bad_request_body"}', 1],
  ['engine_ingest_rows_total{database="default"}', 4],
  ["engine_ingest_flush_duration_seconds_count", 4],
  ["engine_ingest_seal_duration_seconds_count", 4],
  ["engine_ingest_upload_duration_seconds_count", 4],
  ["engine_ingest_queued_bytes_limit", 1],
  ["engine_extents_committed_bytes_total", 1],
  ['engine_disk_size_bytes{folder="data"}', 1],
  ["engine_query_memory_limit_bytes", 1],
  ["engine_query_cache_hits_total", 0],
  ["engine_query_cache_misses_total", 0],
  ["engine_query_cache_fetched_bytes_total", 0],
  ["engine_query_cache_bytes", 0],
  ["engine_query_cache_evictions_total", 0],
  ["engine_query_hold_lapses_total", 0],
  ["engine_queries_running", 0],
  ['engine_query_duration_seconds_count{outcome="ok"}', 1],
  ["engine_compaction_input_bytes_total", 1],
  ["engine_compaction_output_bytes_total", 1],
  ["engine_compaction_merge_duration_seconds_count", 1],
  ["engine_compaction_backlog_days", 0],
  ["engine_compaction_backlog_extents", 0],
  ["engine_retention_extents_total", 1],
  ["engine_deleted_extents_total", 3],
  ["engine_deleted_bytes_total", 1],
  ["engine_deletion_failed_extents_total", 0],
  ["engine_deletion_held_snapshots", 0],
  ["engine_orphans_deleted_total", 0],
  ['engine_duty_last_success_timestamp_seconds{duty="compaction"}', 1_700_000_000],
  ['engine_duty_run_duration_seconds_count{duty="compaction"}', 1],
  ["engine_job_claims_waiting", 0],
  ["engine_job_slots_busy", 0],
  ['engine_job_wait_duration_seconds_count{kind="maintenance.delete_rows"}', 1],
];

describe("GET /metrics", () => {
  test("tells of what the server has done", { timeout: 150_000 }, async () => {
    const at = new Date().toISOString();
    expect(await ingest("t", [{ at, n: 1 }], "first")).toBe(200);
    expect(await ingest("t", [{ at, n: 1 }], "first")).toBe(200);
    expect(await ingest("t", [{ at, n: 2 }])).toBe(200);
    expect(await ingest("t", [{ at, n: 3 }])).toBe(200);
    expect((await services.send("admin", "POST", "/v1/ingest", "{", { "X-Table": "t" })).status).toBe(400);
    expect((await services.send("admin", "POST", "/v1/query", "SELECT count(*) FROM t")).status).toBe(200);
    expect(await ingest("old", [{ at: "2020-01-01T00:00:00Z" }])).toBe(200);
    await engine("alter-table", "--table", "old", "--retention-days", "1");
    const deletion = await services.json("admin", "POST", "/v1/catalog/tables/t/delete", { where: "n = '2'" });
    expect(deletion["httpStatus"]).toBe(202);
    const missing = async () => {
      const samples = await scrape();
      return EXPECTED.filter(([sample, least]) => !((samples.get(sample) ?? -1) >= least));
    };
    // A merge that failed on a busy machine is tried again after a minute.
    await expect.poll(missing, { timeout: 100_000, interval: 100 }).toEqual([]);
  });

  test("knows every name of the documents, and no other", async () => {
    const text = await (await services.send("admin", "GET", "/metrics")).text();
    const families = [...text.matchAll(/^# TYPE (engine_\S+)/gm)].map((match) => String(match[1]));
    const own = families.filter((name) => !/^engine_(process|nodejs)_/.test(name));
    const document = await readFile(new URL("../../docs/metrics.md", import.meta.url), "utf8");
    const documented = [...document.matchAll(/^\| `(engine_[a-z0-9_]+)`/gm)].map((match) => String(match[1]));
    expect(own.toSorted()).toEqual(documented.toSorted());
  });
});

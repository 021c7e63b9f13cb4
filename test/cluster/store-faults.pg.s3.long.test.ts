import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { systemClock } from "../../src/core/clock.ts";
import { ingest, ndjson, rowsOf } from "../support/client.ts";
import { checkStorage } from "./chaos-check.ts";
import { startFaultyStore, type StoreFaults } from "./store-faults.ts";
import { startLocalCluster, type LocalCluster } from "./local-cluster.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

const NONE: StoreFaults = { errorShare: 0, latencyMs: 0 };
const CLIENTS = 6;
const REQUESTS = 5;
const ROWS = 20;

describe.skipIf(lacks("PostgreSQL", "S3 server", "ps")).each(["sync", "staged"])(
  "a cluster whose store is bad (%s)",
  (mode) => {
    const faults = { ...NONE };
    let cluster: LocalCluster;
    beforeAll(async () => {
      cluster = await startLocalCluster({
        env: { ENGINE_INGEST_MODE: mode, ENGINE_COMPACTION_POLL_SECS: "1", ENGINE_COMPACTION_MIN_EXTENTS: "8" },
        counts: { edge: 1, query: 1, ingest: 1, committer: 1, compaction: 1, worker: 0 },
        proxy: (endpoint) => startFaultyStore(endpoint, faults, drawnSeed()),
      });
    });
    afterAll(() => cluster.giveUp());

    test.each<[string, string, Partial<StoreFaults>]>([
      ["a third of its requests is answered 503", "errors", { errorShare: 1 / 3 }],
      ["each of its requests takes 300 ms longer", "latency", { latencyMs: 300 }],
    ])(
      "answers ingest and queries when %s",
      async (_what, table, bad) => {
        Object.assign(faults, NONE, bad);
        const [edge = ""] = cluster.edges;
        const client = async (name: number) => {
          for (let n = 0; n < REQUESTS; n++) {
            const label = `${name}-${n}`;
            const body = ndjson(Array.from({ length: ROWS }, (_, i) => ({ label, n: i })));
            const answer = await ingest(edge, table, body, { "X-Idempotency-Key": label });
            // The store is asked again until it takes it: no client has to.
            expect(answer).toMatchObject({ status: 200, json: { rows_ingested: ROWS } });
          }
        };
        const startedMs = systemClock.monotonicMs();
        await Promise.all(Array.from({ length: CLIENTS }, (_, name) => client(name)));
        const rows = CLIENTS * REQUESTS * ROWS;
        const sql = `SELECT count(*) AS rows, count(DISTINCT label || '/' || n) AS ids FROM ${table}`;
        const counted = () => rowsOf(edge, sql);
        if (mode === "staged") {
          // What was acknowledged becomes visible; until the first commit the columns are not there either.
          await eventually(async () => (await counted().catch(() => []))[0]?.["rows"] === rows);
        }
        expect(await counted()).toEqual([{ rows, ids: rows }]);
        // The faults were there.
        const { errorShare, latencyMs } = faults;
        expect(systemClock.monotonicMs() - startedMs).toBeGreaterThan(REQUESTS * latencyMs);
        const metrics = await (await fetch(`${cluster.urls.get("ingest-1")}/metrics`)).text();
        const wasThrottled = /^engine_objstore_requests_total\{kind="put",outcome="throttled"\} /m.test(metrics);
        expect(wasThrottled || errorShare === 0).toBe(true);
      },
      120_000,
    );

    test("has every byte that its catalog knows of", async () => {
      Object.assign(faults, NONE);
      await cluster.programs.get("compaction-1")?.stop();
      expect(await checkStorage(cluster)).toEqual([]);
    });
  },
);

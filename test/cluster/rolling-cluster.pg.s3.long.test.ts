import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { ingest, query, rowsOf } from "../support/client.ts";
import { Balancer } from "./balancer.ts";
import { startLocalCluster, type LocalCluster } from "./local-cluster.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

const CLIENTS = 4;
/** All edges one after the other, then what is behind them: an ingest and a query server at a time. */
const WAVES = [["edge-1"], ["edge-2"], ["ingest-1", "query-1"], ["ingest-2", "query-2"]];

describe.skipIf(lacks("PostgreSQL", "S3 server", "ps"))("a rolling restart of a whole cluster", () => {
  let cluster: LocalCluster;
  beforeAll(async () => {
    cluster = await startLocalCluster({
      env: { ENGINE_DRAIN_NOTICE_SECS: "3" },
      counts: { edge: 2, query: 2, ingest: 2, committer: 0, compaction: 0, worker: 0 },
    });
  });
  afterAll(() => cluster.giveUp());

  test("fails no request", async () => {
    const { edges } = cluster;
    const balancer = new Balancer(edges);
    await balancer.start();
    const state = { running: true, acknowledged: 0, queried: 0, failures: [] as string[] };
    expect((await ingest(balancer.next(), "t", '{"id":"first"}\n')).status).toBe(200);
    const client = async (name: number) => {
      for (let n = 0; state.running; n++) {
        const id = `${name}-${n}`;
        const headers = { "X-Idempotency-Key": id };
        const ingested = await outcomeOf(ingest(balancer.next(), "t", `{"id":"${id}"}\n`, headers));
        if (ingested === undefined) state.acknowledged++;
        else state.failures.push(`ingest: ${ingested}`);
        const queried = await outcomeOf(query(balancer.next(), "SELECT count(*) AS rows FROM t"));
        if (queried === undefined) state.queried++;
        else state.failures.push(`query: ${queried}`);
      }
    };
    const clients = Promise.all(Array.from({ length: CLIENTS }, (_, name) => client(name)));
    for (const wave of WAVES) {
      const before = state.acknowledged;
      await Promise.all(wave.map((name) => restart(name)));
      // The next are restarted when these have work again, as whoever restarts a cluster waits.
      await eventually(() => edges.every((url) => balancer.isHealthy(url)));
      for (const url of edges) await eventually(() => usesAllPeers(url));
      expect(state.acknowledged).toBeGreaterThan(before);
    }
    state.running = false;
    await clients;
    await balancer.stop();
    expect(state.failures).toEqual([]);
    expect(state.queried).toBeGreaterThan(0);
    const rows = state.acknowledged + 1;
    const sql = "SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM t";
    for (const url of edges) expect(await rowsOf(url, sql)).toEqual([{ rows, ids: rows }]);
  }, 180_000);

  async function restart(name: string): Promise<void> {
    const program = cluster.programs.get(name);
    const exitCode = await program?.stop();
    expect({ exitCode, log: program?.logEnd() }).toMatchObject({ exitCode: 0 });
    await program?.start();
  }

  async function usesAllPeers(url: string): Promise<boolean> {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    return metrics.match(/^engine_edge_peer_usable\{.*\} 1$/gm)?.length === 4;
  }
});

/** Undefined for success. */
async function outcomeOf(sent: Promise<{ status: number; text: string }>): Promise<string | undefined> {
  try {
    const { status, text } = await sent;
    return status === 200 ? undefined : `${status} ${text}`;
  } catch (error) {
    return String(error);
  }
}

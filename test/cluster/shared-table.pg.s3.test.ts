import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { startMeddlingProxy } from "../../src/io/objectstore/s3/meddling-proxy.test-kit.ts";
import { ingest, ndjson, query, rowsOf } from "../support/client.ts";
import { withStorage } from "./chaos-check.ts";
import { startLocalCluster, type LocalCluster } from "./local-cluster.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

describe.skipIf(lacks("PostgreSQL", "S3 server", "ps"))("servers that meet in one table", () => {
  let cluster: LocalCluster;
  let nodes: readonly [string, string];
  let reader: string;
  /** Reads of extents that a query has begun, and what they wait for. */
  const reads = { begun: 0, allowed: Promise.resolve() };
  beforeAll(async () => {
    cluster = await startLocalCluster({
      env: {
        ENGINE_COMPACTION_POLL_SECS: "1",
        ENGINE_COMPACTION_MIN_EXTENTS: "4",
        ENGINE_PHYSICAL_GC_POLL_SECS: "1",
        ENGINE_PHYSICAL_GC_GRACE_SECS: "1",
        // An extent for each request.
        ENGINE_STAGING_DISABLED: "true",
      },
      counts: { edge: 0, query: 1, ingest: 2, committer: 0, compaction: 1, worker: 0 },
      proxy: async (endpoint, role) =>
        role === "query"
          ? startMeddlingProxy(endpoint, ({ method, url }) => {
              if (method !== "GET" || !url.includes(".tlm")) return undefined;
              reads.begun++;
              return { kind: "wait", until: reads.allowed };
            })
          : undefined,
    });
    const urlOf = (name: string) => cluster.urls.get(name) ?? "";
    nodes = [urlOf("ingest-1"), urlOf("ingest-2")];
    reader = urlOf("query-1");
    // It starts when a test wants it to.
    await cluster.programs.get("compaction-1")?.stop();
  });
  afterAll(() => cluster.giveUp());

  test("two commit at once: each snapshot is one's own, and all rows are there", async () => {
    const clientsOfEach = 4;
    const requests = 12;
    const snapshots: [Set<string>, Set<string>] = [new Set(), new Set()];
    const client = async (node: 0 | 1, name: number) => {
      let last = 0;
      for (let n = 0; n < requests; n++) {
        const id = `${node}-${name}-${n}`;
        const answer = await ingest(nodes[node], "met", ndjson([{ id }, { id }]), { "X-Idempotency-Key": id });
        expect(answer).toMatchObject({ status: 200, json: { replayed: false } });
        // It was sent after the one before was acknowledged.
        expect(Number(answer.json.snapshot_id)).toBeGreaterThan(last);
        last = Number(answer.json.snapshot_id);
        snapshots[node].add(answer.json.snapshot_id);
      }
    };
    const clients = Array.from({ length: clientsOfEach }, (_, name) => [client(0, name), client(1, name)]);
    await Promise.all(clients.flat());
    expect([...snapshots[0]].filter((id) => snapshots[1].has(id))).toEqual([]);
    const ids = 2 * clientsOfEach * requests;
    const sql = "SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM met";
    expect(await rowsOf(reader, sql)).toEqual([{ rows: 2 * ids, ids }]);
    await withStorage(cluster, ({ catalog }) => catalog.verify());
  });

  test("two get the same keys at once: each is stored once", async () => {
    const keys = Array.from({ length: 40 }, (_, n) => `key-${n}`);
    const acks = await Promise.all(
      keys.flatMap((id) => nodes.map((node) => ingest(node, "keyed", ndjson([{ id }]), { "X-Idempotency-Key": id }))),
    );
    expect(acks.map(({ status }) => status)).toEqual(acks.map(() => 200));
    // Of each two one was first, and both name the same snapshot.
    for (const [n] of keys.entries()) {
      const [one, other] = acks.slice(2 * n, 2 * n + 2).map(({ json }) => json);
      expect(one?.replayed).toBe(other?.replayed === false);
      expect(one?.snapshot_id).toBe(other?.snapshot_id);
    }
    const sql = "SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM keyed";
    expect(await rowsOf(reader, sql)).toEqual([{ rows: keys.length, ids: keys.length }]);
  });

  test("two widen it at once, by the same and by different columns: no value is lost, no column comes twice", async () => {
    const rounds = 12;
    const perRound = 3;
    const send = async (node: 0 | 1, round: number, n: number) => {
      const id = `${node}/${round}/${n}`;
      // One name in two spellings is one column.
      const same = node === 0 ? `same_${round}` : `Same_${round}`;
      const body = ndjson([{ id, [same]: id, [`own_${node}_${round}`]: id }]);
      expect((await ingest(nodes[node], "wide", body)).status).toBe(200);
    };
    for (let round = 0; round < rounds; round++) {
      const sent = Array.from({ length: perRound }, (_, n) => [send(0, round, n), send(1, round, n)]);
      await Promise.all(sent.flat());
    }
    const columns = await withStorage(cluster, async ({ catalog }) => {
      await catalog.verify();
      return (await catalog.table("default", "wide"))?.columns.map(({ name }) => name.toLowerCase()) ?? [];
    });
    const added = columns.filter((name) => /^(same|own)_/.test(name));
    const names = Array.from({ length: rounds }, (_, r) => [`same_${r}`, `own_0_${r}`, `own_1_${r}`]).flat();
    expect(added.toSorted()).toEqual(names.toSorted());
    const filled = names.map((name) => `count(CASE WHEN ${name} = id THEN 1 END) AS ${name}`).join(", ");
    const expected = names.map((name) => [name, name.startsWith("same") ? 2 * perRound : perRound] as const);
    expect(await rowsOf(reader, `SELECT ${filled} FROM wide`)).toEqual([Object.fromEntries(expected)]);
  });

  test("a query outlives the compaction of what it reads: its extents go after it, not under it", async () => {
    const extents = 30;
    for (let n = 0; n < extents; n++) {
      expect((await ingest(nodes[n % 2 === 0 ? 0 : 1], "merged", ndjson([{ id: `${n}`, n }]))).status).toBe(200);
    }
    const before = await liveKeys("merged");
    expect(before).toHaveLength(extents);
    const snapshot = await withStorage(cluster, async ({ catalog }) => (await catalog.head()).id);

    const gate = Promise.withResolvers<void>();
    reads.allowed = gate.promise;
    reads.begun = 0;
    const sql = "SELECT count(*) AS rows, count(DISTINCT id) AS ids, sum(CAST(n AS INT))::INT AS sum FROM merged";
    const running = query(reader, sql);
    await eventually(() => reads.begun > 0);
    await eventually(async () => (await metricOf("query-1", "engine_query_held_snapshot ")) === snapshot);
    await cluster.programs.get("compaction-1")?.start();
    await eventually(async () => (await liveKeys("merged")).length < extents / 4);
    // Each search for what may go is a second after the one before: the last of these is past the grace.
    const searched = await searches();
    await eventually(async () => (await searches()) >= searched + 3);
    expect(await missing(before)).toEqual([]);
    gate.resolve();
    reads.allowed = Promise.resolve();
    const answer = await running;
    const sum = (extents * (extents - 1)) / 2;
    expect(answer).toMatchObject({ status: 200, rows: [{ rows: extents, ids: extents, sum }] });

    const after = await liveKeys("merged");
    await eventually(async () => (await missing(before)).length >= extents - after.length);
    expect(await rowsOf(reader, sql)).toEqual([{ rows: extents, ids: extents, sum }]);
    // Nothing answers with what is left of a snapshot.
    const old = await query(reader, `SELECT count(*) AS rows FROM merged AT (VERSION => ${snapshot})`);
    expect(old).toMatchObject({ status: 410, json: { error: { code: "snapshot_expired" } } });
  }, 120_000);

  const searches = () => metricOf("compaction-1", 'engine_duty_runs_total{duty="deletion",outcome="ok"} ');

  /** The value in the line of a node's metrics that begins so; 0 where there is none. */
  async function metricOf(node: string, line: string): Promise<number> {
    const metrics = await (await fetch(`${cluster.urls.get(node)}/metrics`)).text();
    const found = metrics.split("\n").find((one) => one.startsWith(line));
    return Number(found?.slice(line.length) ?? 0);
  }

  function liveKeys(table: string): Promise<string[]> {
    return withStorage(cluster, async ({ catalog }) => {
      const found = await catalog.table("default", table);
      const extents = await catalog.extents(found?.id ?? 0, (await catalog.head()).id, {}, []);
      return extents.map(({ key }) => key);
    });
  }

  /** Objects that the store does not have. */
  function missing(keys: readonly string[]): Promise<string[]> {
    return withStorage(cluster, async ({ store }) => {
      const found = await Promise.all(keys.map((key) => store.head(key)));
      return keys.filter((_, i) => found[i] === undefined);
    });
  }
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { ingest, query } from "../support/client.ts";
import { startLocalCluster, type LocalCluster } from "./local-cluster.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

type Json = Record<string, unknown>;

/** Jobs in a cluster: asked for at an edge, stored by a query server, run by a server that has the role `worker` alone. */
describe.skipIf(lacks("PostgreSQL", "S3 server", "ps"))("the role worker", () => {
  let cluster: LocalCluster;
  let edge: string;
  let worker: string;
  beforeAll(async () => {
    cluster = await startLocalCluster({
      counts: { edge: 1, query: 1, ingest: 1, committer: 0, compaction: 0, worker: 1 },
    });
    edge = cluster.edges[0] ?? "";
    worker = cluster.urls.get("worker-1") ?? "";
  });
  afterAll(() => cluster.giveUp());

  test("serves health and metrics only", async () => {
    expect((await fetch(`${worker}/health`)).status).toBe(200);
    expect(await (await fetch(`${worker}/metrics`)).text()).toContain("engine_job_slots");
    expect((await query(worker, "SELECT 1")).status).toBe(404);
    expect((await ingest(worker, "t", "{}")).status).toBe(404);
    expect((await fetch(`${worker}/v1/jobs`)).status).toBe(404);
  });

  test("runs exports and verifications that an edge was asked for", async () => {
    const rows = Array.from({ length: 500 }, (_, n) => JSON.stringify({ n: String(n) })).join("\n");
    expect((await ingest(edge, "t", rows)).status).toBe(200);

    const verification = { kind: "maintenance.verify_extents", payload: { database: "default", table: "t" } };
    const { job_id: id } = await ask("POST", "/v1/jobs", { ...verification, database: "default" });
    const verified = await finished(`/v1/jobs/${String(id)}`);
    expect(verified).toMatchObject({ status: "done", result: { ok: true, rows: 500, extents: 1 } });
    expect(verified["holder"]).toMatch(/^dispatcher\//);

    const asked = await ask("POST", "/v1/exports", { query: "SELECT n FROM t ORDER BY n" });
    const exported = await finished(`/v1/exports/${String(asked["id"])}`);
    expect(exported).toMatchObject({ status: "done", rows: 500 });
    const download = await fetch(edge + String(exported["download_url"]));
    expect(download.status).toBe(200);
    const bytes = Buffer.from(await download.arrayBuffer());
    expect(bytes.length).toBe(exported["bytes"]);
    expect(bytes.subarray(0, 4).toString()).toBe("PAR1");
  });

  async function ask(method: string, path: string, body?: Json): Promise<Json> {
    const answer = await fetch(edge + path, {
      method,
      headers: { "Content-Type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expect(answer.status).toBeLessThan(300);
    return (await answer.json()) as Json;
  }

  async function finished(path: string): Promise<Json> {
    let found: Json = {};
    await eventually(async () => {
      found = await ask("GET", path);
      return found["status"] !== "queued" && found["status"] !== "leased";
    });
    return found;
  }
});

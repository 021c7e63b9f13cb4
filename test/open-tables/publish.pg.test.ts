import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sharedTestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import type { Json } from "../api/services.test-kit.ts";
import { startServices } from "../edge/run.test-kit.ts";
import { ndjson } from "../support/client.ts";
import { temporaryHome } from "../support/engine.ts";

/** One process takes requests and another merges; an edge is before them. They share a catalog alone. */
describe.skipIf(lacks("PostgreSQL"))("publishing in a cluster", () => {
  const closers: (() => Promise<unknown>)[] = [];
  let edge: string;

  beforeAll(async () => {
    const postgres = await sharedTestServer();
    closers.push(() => postgres.stop());
    const catalog = await postgres.createDatabase();
    const { home, remove } = await temporaryHome();
    closers.push(remove);
    const start = async (roles: string, env: Record<string, string> = {}) => {
      const services = await startServices({
        ENGINE_HOME: home,
        ENGINE_CATALOG_URL: catalog,
        ENGINE_ROLES: roles,
        // It is woken, or nothing happens.
        ENGINE_COMPACTION_POLL_SECS: "86400",
        ...env,
      });
      closers.push(() => services.stop());
      return services.url;
    };
    const peer = await start("query,ingest");
    await start("compaction");
    edge = await start("edge", { ENGINE_QUERY_PEERS: peer, ENGINE_INGEST_PEERS: peer });
  }, 120_000);
  afterAll(async () => {
    for (const close of closers.toReversed()) await close();
  });

  test("whoever merges is told, wherever it is asked for", async () => {
    const path = "/v1/admin/databases/default/tables/events";
    const headers = { "X-Table": "events", "Content-Type": "application/x-ndjson" };
    for (const n of [1, 2, 3]) {
      await fetch(`${edge}/v1/ingest`, { method: "POST", body: ndjson([{ n }]), headers });
      const answer = await fetch(`${edge}${path}/publish`, { method: "POST" });
      expect([answer.status, await answer.json()]).toMatchObject([200, { rows_published: 1, pending_rows: 0 }]);
      const described = (await (await fetch(edge + path)).json()) as Json;
      expect(described).toMatchObject({ row_count: n, unpublished_rows: 0, unpublished_bytes: 0 });
    }
  }, 60_000);
});

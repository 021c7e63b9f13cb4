import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { NO_FSYNC, startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { CuttingProxy } from "../../src/catalog/postgres/proxy.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { keepSending } from "../support/steady-client.test-kit.ts";

/** What `docs/operations.md` says of a failover: nothing that was acknowledged is lost, and nothing counts twice. */
describe.skipIf(lacks("PostgreSQL"))("PostgreSQL with a synchronous standby", () => {
  let primary: TestServer;
  let standby: TestServer;
  let address: CuttingProxy;
  beforeAll(async () => {
    primary = await startTestServer(findPostgresPrograms()?.folder ?? "", NO_FSYNC);
    address = await CuttingProxy.start(primary.port);
  });
  afterAll(async () => {
    await address.stop();
    await standby?.stop();
    await primary.stop();
  });

  test("fails over under load", { timeout: 180_000 }, async () => {
    const url = await primary.createDatabase();
    standby = await primary.startStandby();
    await primary.query(url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await primary.query(url, "SELECT pg_reload_conf()");
    await eventually(async () => {
      const [row] = await primary.query(url, "SELECT sync_state FROM pg_stat_replication");
      return row?.["sync_state"] === "sync";
    });
    const { home, remove } = await temporaryHome();
    const engine = await startEngine({ home, env: { ENGINE_CATALOG_URL: address.urlOf(url) } });
    const clients = ["a", "b", "c", "d"].map((name) => keepSending(() => engine.url, name));
    const sum = () => clients.reduce((rows, { acknowledged }) => rows + acknowledged, 0);
    await eventually(() => sum() > 50);

    await primary.kill();
    const before = sum();
    standby.promote();
    address.moveTo(standby.port);
    await eventually(() => sum() > before + 50);
    await Promise.all(clients.map((client) => client.stop()));

    // The server felt it, whether or not a client did: what may be repeated is.
    expect(await catalogFailures(engine.url)).toBeGreaterThan(0);
    expect(await rowsOf(engine.url, "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM t")).toEqual([
      { n: sum(), ids: sum() },
    ]);
    expect((await engine.stop()).code).toBe(0);
    await remove();
  });
});

async function catalogFailures(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const samples = [...text.matchAll(/^engine_catalog_failures_total\{[^}]*\} (\d+)$/gm)];
  return samples.reduce((sum, [, count]) => sum + Number(count), 0);
}

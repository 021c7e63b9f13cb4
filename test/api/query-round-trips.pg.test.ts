import { delay } from "../../src/core/waiting.test-kit.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { startServices } from "../edge/run.test-kit.ts";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { CuttingProxy } from "../../src/catalog/postgres/proxy.test-kit.ts";
import { ingest, rowsOf } from "../support/client.ts";
import { temporaryHome } from "../support/engine.ts";

/** How often a query waits for the catalog, which in a cluster is some way off: every time costs each query that much. */

const ROUNDS = 5;

describe.skipIf(lacks("PostgreSQL"))("a server on PostgreSQL", () => {
  let postgres: TestDatabases;
  let proxy: CuttingProxy;
  let url: string;
  const closers: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    postgres = await sharedTestServer();
    closers.push(() => postgres.stop());
    proxy = await CuttingProxy.start(postgres.port);
    closers.push(() => proxy.stop());
    const { home, remove } = await temporaryHome();
    closers.push(remove);
    // No background duties, which ask the catalog too.
    const services = await startServices({
      ENGINE_HOME: home,
      ENGINE_ROLES: "query,ingest",
      ENGINE_CATALOG_URL: proxy.urlOf(await postgres.createDatabase()),
    });
    closers.push(() => services.stop());
    url = services.url;
  });

  afterAll(async () => {
    for (const close of closers.toReversed()) await close();
  });

  /** The fewest round trips that the work takes: on a slow machine a query may last so long that it says what it reads. */
  async function fewest(
    work: () => Promise<unknown>,
    before: () => Promise<unknown> = async () => {},
  ): Promise<number> {
    const counts: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await before();
      const start = proxy.roundTrips;
      await work();
      counts.push(proxy.roundTrips - start);
    }
    return Math.min(...counts);
  }

  let rows = 0;
  const write = async () => {
    const { status, text } = await ingest(url, "t", '{"body":"x"}\n');
    expect([status, text]).toEqual([200, expect.anything()]);
    rows++;
  };
  const count = async () => expect(await rowsOf(url, "SELECT count(*) AS n FROM t")).toEqual([{ n: rows }]);

  test("asks the catalog twice for a query: where the head is with the tables named, and which extents to read", async () => {
    await write();
    await count();
    expect(await fewest(count)).toBe(2);
  });

  test("asks once more when something was committed since the table was last read", async () => {
    await write();
    await count();
    const writeAndTell = async () => {
      await write();
      // The commit is told to other nodes once it is acknowledged.
      await delay(100);
    };
    expect(await fewest(count, writeAndTell)).toBe(3);
  });

  test("looks up all tables of a query at once", async () => {
    const { status } = await ingest(url, "u", '{"body":"y"}\n');
    expect(status).toBe(200);
    const joined = async () =>
      expect(await rowsOf(url, "SELECT (SELECT count(*) FROM t) AS t, (SELECT count(*) FROM u) AS u")).toEqual([
        { t: rows, u: 1 },
      ]);
    await joined();
    expect(await fewest(joined)).toBe(3);
  });

  test("asks once for a query that reads no table", async () => {
    expect(await fewest(() => rowsOf(url, "SELECT 1 AS one"))).toBe(1);
  });
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../core/gates.test-kit.ts";
import { seededRandom } from "../core/random.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../catalog/postgres/postgres.test-kit.ts";
import {
  damagesIn,
  filesOf,
  loadDamaged,
  newTable,
  nodeOn,
  publishedOf,
  STEPS,
  take,
  temporaryStore,
} from "./histories.test-kit.ts";

const ALL = { all: true, properties: {} };

describe.skipIf(lacks("PostgreSQL"))("on PostgreSQL", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop(), 120_000);

  test("nodes that list the files of a table at one moment tell the same of it, byte for byte", async () => {
    const { store, remove } = await temporaryStore();
    const url = await server.createDatabase();
    const catalogs = await Promise.all([openTestCatalog(url), openTestCatalog(url), openTestCatalog(url)]);
    const [first] = catalogs;
    try {
      const { id, database, name } = await newTable(first, "t");
      const nodes = catalogs.map((catalog) => nodeOn(catalog, store));
      const random = seededRandom(7);
      for (let round = 0; round < 12; round++) {
        await take(first, id, STEPS[Math.floor(random.next() * STEPS.length)] ?? "commit", random);
        const all = await Promise.all(nodes.map((node) => node.load({ database, name }, ALL)));
        expect(new Set(all.map((loaded) => JSON.stringify(loaded))).size).toBe(1);
        const table = await first.table(database, name);
        const head = (await first.head()).id;
        const last = all[0]?.metadata.snapshots.at(-1) as { "manifest-list": string } | undefined;
        const { paths } = last === undefined ? { paths: [] } : await filesOf(store, last["manifest-list"]);
        expect(paths).toEqual(
          publishedOf(table ?? { ...(await newTable(first, "never")) }, head, await first.extents(id, head)),
        );
      }
    } finally {
      for (const catalog of catalogs) await catalog.close();
      await remove();
    }
  });

  test("a damaged extent fails the load by name", async () => {
    const catalog = await openTestCatalog(await server.createDatabase());
    try {
      const damages = Object.entries(damagesIn({ extentStats: "engine.extent_stats", columnIds: "engine.extents" }));
      for (const [i, [what, damage]] of damages.entries()) {
        const { said, id } = await loadDamaged(catalog, { name: `damaged${i}`, damage, prefix: "engine." });
        const message = `extent ${id} is damaged: its statistics in the catalog cannot be read`;
        expect([what, said]).toMatchObject([what, { code: "unavailable", message }]);
      }
    } finally {
      await catalog.close();
    }
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { aFlush, anExtent, column } from "../../catalog/contract-fixtures.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../../catalog/postgres/postgres.test-kit.ts";
import { ExtentPages } from "./extents.ts";

const SECOND_NS = 1_000_000_000n;
/** 2024-01-01T00:00:00Z */
const START_NS = 19_723n * 86_400n * SECOND_NS;

describe.skipIf(lacks("PostgreSQL"))("extents in PostgreSQL", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop());

  it("come page by page, each once", async () => {
    const catalog = await openTestCatalog(await server.createDatabase());
    const { table } = await catalog.createTable({ database: "d", name: "t", columns: [column("at", "timestamp")] });
    const extents = Array.from({ length: 2_000 }, (_, i) => {
      const minAtNs = START_NS + BigInt(i) * 200n * SECOND_NS;
      return anExtent({ stats: [], minAtNs, maxAtNs: minAtNs + 300n * SECOND_NS });
    });
    const ends = [-(2n ** 63n), 2n ** 63n - 1n].map((atNs) => anExtent({ stats: [], minAtNs: atNs, maxAtNs: atNs }));
    const outcomes = await catalog.commit([aFlush(table, { extents: [...extents, ...ends] })]);
    expect(outcomes[0]?.kind).toBe("committed");
    const answers: number[] = [];
    const pages = new ExtentPages(
      {
        tableStats: (tableId) => catalog.tableStats(tableId),
        crowdedDays: (request) => catalog.crowdedDays(request),
        extents: async (...args) => {
          const found = await catalog.extents(...args);
          answers.push(found.length);
          return found;
        },
      },
      100,
    );
    const ids: string[] = [];
    for await (const { id } of pages.of(table.id, (await catalog.head()).id)) ids.push(id);
    expect(ids.toSorted()).toEqual([...extents, ...ends].map(({ id }) => id).sort());
    expect(Math.max(...answers)).toBeLessThanOrEqual(200);
    await catalog.close();
  });
});

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { NO_FSYNC, startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { alternateTypes, type AlternatingReport } from "./alternating-types.ts";

/** Of each catalog. An hour is 3600. */
const seconds = Number(process.env["ENGINE_TEST_ALTERNATING_SECONDS"] ?? 15);
const secondsPerTable = Math.max(3, seconds / 60);
const timeout = (seconds + 300) * 1_000;

function expectAgreement(report: AlternatingReport): void {
  process.stdout.write(`${JSON.stringify(report)}\n`);
  expect(report.problems).toEqual([]);
  expect(report.tables).toBeGreaterThan(1);
  expect(report.slowestMs).toBeLessThan(30_000);
}

test("two clients of one node that alternate types settle, on SQLite", { timeout }, async () => {
  const place = await temporaryHome();
  const engine = await startEngine({ home: place.home });
  const catalog = new DatabaseSync(join(place.home, "catalog.db"), { readOnly: true });
  try {
    const version = catalog.prepare("SELECT schema_version AS v FROM tables WHERE folded_name = ?");
    const schemaVersion = (table: string) => Number(version.get(table)?.["v"]);
    expectAgreement(await alternateTypes({ urls: [engine.url, engine.url], seconds, secondsPerTable, schemaVersion }));
  } finally {
    catalog.close();
    await engine.stop();
    await place.remove();
  }
});

describe.skipIf(findPostgresPrograms()?.folder === undefined)("PostgreSQL", () => {
  let postgres: TestServer;
  beforeAll(async () => {
    postgres = await startTestServer(findPostgresPrograms()?.folder ?? "", NO_FSYNC);
  }, 120_000);
  afterAll(() => postgres.stop(), 120_000);

  test("two clients of two nodes that alternate types settle", { timeout }, async () => {
    const place = await temporaryHome();
    const catalogUrl = await postgres.createDatabase();
    const env = { ENGINE_CATALOG_URL: catalogUrl, ENGINE_LOCAL_DATA: join(place.home, "data") };
    const nodes = [
      await startEngine({ home: join(place.home, "one"), env }),
      await startEngine({ home: join(place.home, "two"), env }),
    ] as const;
    try {
      const schemaVersion = async (table: string) => {
        const text = `SELECT schema_version AS v FROM engine.tables WHERE folded_name = '${table}'`;
        return Number((await postgres.query(catalogUrl, text))[0]?.["v"]);
      };
      const urls = [nodes[0].url, nodes[1].url] as const;
      expectAgreement(await alternateTypes({ urls, seconds, secondsPerTable, schemaVersion }));
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
      await place.remove();
    }
  });
});

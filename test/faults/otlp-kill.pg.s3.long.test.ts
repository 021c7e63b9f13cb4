import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { NO_FSYNC, startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { storeEnvironment } from "../../src/io/objectstore/s3/s3.test-kit.ts";
import { findVersitygw, startVersitygw, type Versitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { killUnderOtlp } from "./otlp-kill.ts";

const KILLS = 4;
const programs = findPostgresPrograms()?.folder;
const versitygw = await findVersitygw();

describe.skipIf(programs === undefined || versitygw === undefined)("PostgreSQL and S3", () => {
  let postgres: TestServer;
  let s3: Versitygw;
  beforeAll(async () => {
    [postgres, s3] = await Promise.all([startTestServer(programs ?? "", NO_FSYNC), startVersitygw(versitygw ?? "")]);
  }, 120_000);
  afterAll(() => Promise.all([postgres.stop(), s3.stop()]), 120_000);

  test.each([
    ["sync", 0],
    ["staged", 120_000],
  ])(`${KILLS} × kill -9 under logs by OTLP, mode %s`, { timeout: 600_000 }, async (mode, visibleWithinMs) => {
    const seed = drawnSeed();
    const env = {
      ENGINE_INGEST_MODE: mode,
      ENGINE_CATALOG_URL: await postgres.createDatabase(),
      ...storeEnvironment(s3, await s3.makeBucket()),
    };
    const report = await killUnderOtlp({ seed, kills: KILLS, env, visibleWithinMs });
    expect(report, `seed ${seed}`).toMatchObject({ problems: [] });
    expect(report.requests).toBeGreaterThan(KILLS);
  });
});

import { drawnSeed } from "../../src/core/drawn-seed.test-kit.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { NO_FSYNC, startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { openInNewBucket, storeEnvironment } from "../../src/io/objectstore/s3/s3.test-kit.ts";
import { findVersitygw, startVersitygw, type Versitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { killDroppers } from "./filedrop-kill.ts";

const programs = findPostgresPrograms()?.folder;
const versitygw = await findVersitygw();

/** Under another load each time; a finding names its seed. */
const seed = drawnSeed();
const DROPPED = { files: 200, kills: 3 };
const EXPECTED = { problems: [], rows: 196 * 3, bad: 4 };

describe.skipIf(programs === undefined)("files dropped on two nodes that are killed at random are stored once", () => {
  let postgres: TestServer;
  beforeAll(async () => {
    postgres = await startTestServer(programs ?? "", NO_FSYNC);
  }, 120_000);
  afterAll(() => postgres.stop(), 120_000);

  test("from a disk that they share", { timeout: 900_000 }, async () => {
    const env = { ENGINE_CATALOG_URL: await postgres.createDatabase() };
    const report = await killDroppers({ seed, ...DROPPED, env });
    expect(report, `seed ${seed}`).toMatchObject(EXPECTED);
  });

  describe.skipIf(versitygw === undefined)("S3", () => {
    let s3: Versitygw;
    beforeAll(async () => (s3 = await startVersitygw(versitygw ?? "")));
    afterAll(() => s3.stop());

    test("from a bucket", { timeout: 900_000 }, async () => {
      const { store, options } = await openInNewBucket(s3);
      const env = {
        ENGINE_CATALOG_URL: await postgres.createDatabase(),
        ...storeEnvironment(s3, options.bucket),
      };
      const put = (key: string, content: string) => store.put(key, Buffer.from(content));
      const report = await killDroppers({ seed, ...DROPPED, env, put });
      store.close();
      expect(report, `seed ${seed}`).toMatchObject(EXPECTED);
    });
  });
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { storeEnvironment } from "../../src/io/objectstore/s3/s3.test-kit.ts";
import { sharedVersitygw, type Versitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { CalledServices } from "../api/services.test-kit.ts";
import { ndjson } from "../support/client.ts";

/** What clients of the Iceberg catalog are told of a bucket. */

describe.skipIf(lacks("S3 server"))("of a server on a bucket", () => {
  let s3: Versitygw;
  let bucket: string;
  let services: CalledServices<"admin">;

  beforeAll(async () => {
    s3 = await sharedVersitygw();
    bucket = await s3.makeBucket();
    services = await CalledServices.start([["admin", "admin"]] as const, {
      ...storeEnvironment(s3, bucket),
      ENGINE_WRITE_FORMAT: "parquet",
      ENGINE_ICEBERG_CREDENTIALS: "static",
      ENGINE_ICEBERG_ACCESS_KEY_ID: "for-readers",
      ENGINE_ICEBERG_SECRET_ACCESS_KEY: "their-secret",
    });
    const headers = { "X-Table": "t", "Content-Type": "application/x-ndjson" };
    const answer = await services.send("admin", "POST", "/v1/ingest", ndjson([{ n: 1 }]), headers);
    expect(answer.status).toBe(200);
  }, 120_000);
  afterAll(async () => {
    await services?.close();
    await s3?.stop();
  });

  const load = (headers: Record<string, string> = {}) =>
    services.json("admin", "GET", "/iceberg/v1/namespaces/default/tables/t", undefined, headers);
  const store = () => ({
    "client.region": s3.region,
    "s3.region": s3.region,
    "s3.endpoint": s3.endpoint,
    "s3.path-style-access": "true",
  });
  const keys = { "s3.access-key-id": "for-readers", "s3.secret-access-key": "their-secret" };
  const asking = { "X-Iceberg-Access-Delegation": "vended-credentials" };

  test("clients are told where the store is, and those that do not ask get no keys", async () => {
    expect(await services.json("admin", "GET", "/iceberg/v1/config")).toMatchObject({ defaults: store() });
    const loaded = await load();
    expect(loaded["config"]).toEqual(store());
    expect(loaded).not.toHaveProperty("storage-credentials");
  });

  test("keys are for the places of the files and of the metadata", async () => {
    const loaded = await load(asking);
    const config = { ...store(), ...keys };
    expect(loaded["config"]).toEqual(config);
    const { location } = loaded["metadata"] as { location: string };
    // DuckDB reads nothing outside of these.
    expect(loaded["storage-credentials"]).toEqual([
      { prefix: `s3://${bucket}/engine/default/t/`, config },
      { prefix: `${location}/`, config },
    ]);
    expect(String(loaded["metadata-location"]).startsWith(`${location}/`)).toBe(true);
  });

  test("ClickHouse gets the endpoint with a slash at its end", async () => {
    const { config } = (await load({ ...asking, "User-Agent": "ClickHouse/26.9.2.1" })) as { config?: object };
    expect(config).toEqual({ ...store(), ...keys, "s3.endpoint": `${s3.endpoint}/` });
  });
});

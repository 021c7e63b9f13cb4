import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { createMetrics, type Metrics } from "../../core/metrics.ts";
import { aFlush, anExtent, column } from "../contract-fixtures.test-kit.ts";
import { findPostgresPrograms } from "../../db/postgres/server-programs.ts";
import { NO_FSYNC, openTestCatalog, startTestServer, type TestServer } from "./postgres.test-kit.ts";

const programs = findPostgresPrograms()?.folder;

const sampleOf = async ({ registry }: Metrics, sample: string): Promise<number | undefined> => {
  const line = (await registry.metrics()).split("\n").find((one) => one.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.slice(sample.length + 1));
};

describe.skipIf(lacks("PostgreSQL"))("metrics of a PostgreSQL catalog", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer(programs ?? "", NO_FSYNC);
  });
  afterAll(() => server.stop());

  it("show connections, their limits, and how long calls wait for one and keep it", async () => {
    const metrics = createMetrics();
    const catalog = await openTestCatalog(await server.createDatabase(), { metrics, maxConnections: 3 });
    const { table } = await catalog.createTable({ database: "d", name: "t", columns: [column("at", "timestamp")] });
    const before = await sampleOf(metrics, 'engine_catalog_call_duration_seconds_count{pool="write"}');
    await Promise.all(Array.from({ length: 8 }, () => catalog.head()));
    await catalog.commit([aFlush(table, { extents: [anExtent()] })]);
    expect(await sampleOf(metrics, 'engine_catalog_connections_limit{pool="read"}')).toBe(2);
    expect(await sampleOf(metrics, 'engine_catalog_connections_limit{pool="write"}')).toBe(1);
    // The commit is told to other nodes behind its back.
    await expect.poll(() => sampleOf(metrics, 'engine_catalog_connections{pool="read",state="idle"}')).toBe(2);
    expect(await sampleOf(metrics, 'engine_catalog_connections{pool="read",state="busy"}')).toBe(0);
    expect(await sampleOf(metrics, 'engine_catalog_waiting{pool="read"}')).toBe(0);
    for (const name of ["wait", "call"]) {
      const count = await sampleOf(metrics, `engine_catalog_${name}_duration_seconds_count{pool="read"}`);
      expect(count).toBeGreaterThanOrEqual(8);
    }
    const after = await sampleOf(metrics, 'engine_catalog_call_duration_seconds_count{pool="write"}');
    expect(Number(after) - Number(before)).toBe(1);
    await catalog.close();
  });

  it("count connections that break, that cannot be opened, and calls that get none", async () => {
    const metrics = createMetrics();
    const options = { metrics, maxConnections: 2, acquireTimeoutMs: 300 };
    const catalog = await openTestCatalog(await server.createDatabase(), options);
    await catalog.head();
    await server.kill();
    await expect(catalog.head()).rejects.toMatchObject({ code: "unavailable" });
    await server.start();
    expect(await sampleOf(metrics, 'engine_catalog_failures_total{pool="read",kind="connect"}')).toBeGreaterThan(0);
    expect(await sampleOf(metrics, 'engine_catalog_failures_total{pool="read",kind="timeout"}')).toBe(1);
    expect(await sampleOf(metrics, 'engine_catalog_connections{pool="read",state="idle"}')).toBe(0);
    await catalog.head();
    expect(await sampleOf(metrics, 'engine_catalog_connections{pool="read",state="idle"}')).toBe(1);
    await catalog.close();
  });
});

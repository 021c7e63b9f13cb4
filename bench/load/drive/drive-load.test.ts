import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { messageOf } from "../../../src/core/errors.ts";
import { eventually } from "../../../src/core/waiting.test-kit.ts";
import { descendantsOf } from "../../support/process-stats.ts";
import { parseProfile, type Profile } from "../profiles/profile.ts";
import { driveLoad, openLoad, type DriveOptions } from "./drive-load.ts";
import { startScriptedServer } from "./scripted-server.test-kit.ts";

const { signal } = new AbortController();

/** Of this file alone, so that what is left in it is its own. */
let temporary: string;
beforeAll(async () => {
  temporary = await mkdtemp(join(tmpdir(), "engine-bench-drive-"));
  vi.stubEnv("TMPDIR", temporary);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(temporary, { recursive: true });
});

function profileOf(text: string): Profile {
  return parseProfile(text, "test.toml");
}

async function driven(url: string, text: string, options: Partial<DriveOptions> & { onStart?: () => void } = {}) {
  return await driveLoad({ url, profile: profileOf(text), seed: 3, signal, ...options });
}

test("a stall is seen by every request that fell due meanwhile, also where connections were missing", async () => {
  await using server = await startScriptedServer();
  const run = await driven(
    server.url,
    `clients = 2
     rate = "200/s"
     duration = "1500 ms"
     [health]`,
    // From 500 ms to 800 ms after the first request.
    { onStart: () => setTimeout(() => server.stallUntil(performance.now() + 300), 600) },
  );
  expect(run.offered).toBe(300);
  expect(run.accepted).toBe(300);
  // 60 requests fell due in the 300 ms, and waited 150 ms on average; two connections alone would have told of two.
  expect(run.latencyMs.max).toBeGreaterThan(280);
  expect(run.latencyMs.p90).toBeGreaterThan(90);
  expect(run.latencyMs.mean).toBeGreaterThan(20);
  // Counted from the first byte, only the two show it.
  expect(run.serviceMs.mean).toBeLessThan(run.latencyMs.mean - 20);
  expect(run.backlog).toBe(0);
});

test("what a server cannot take is the backlog, and its waiting is in the latencies", async () => {
  await using server = await startScriptedServer((_, response) => {
    setTimeout(() => response.end("{}"), 100);
    return true;
  });
  const run = await driven(
    server.url,
    `clients = 1
     rate = "100/s"
     duration = "1 s"
     [health]`,
  );
  expect(run.offered).toBe(100);
  expect(run.offeredPerSecond).toBe(100);
  expect(run.achievedPerSecond).toBeGreaterThan(1);
  expect(run.achievedPerSecond).toBeLessThan(11);
  expect(run.backlog).toBeGreaterThan(80);
  expect(run.abandoned).toBeGreaterThan(50);
  expect(run.accepted + run.abandoned).toBe(100);
  // Those that were given up had waited through the drain.
  expect(run.latencyMs.max).toBeGreaterThan(2_500);
});

test("several generators share rate and clients, and requests are mixed by their shares", async () => {
  await using server = await startScriptedServer();
  const run = await driven(
    server.url,
    `clients = 5
     rate = "400/s"
     arrivals = "poisson"
     duration = "1 s"
     [data]
     tables = 2
     rows_before = 10
     [ingest]
     share = 0.5
     rows = 3
     [[queries]]
     name = "one"
     share = 0.3
     sql = "SELECT 1"
     [health]
     share = 0.2`,
    { processes: 2 },
  );
  const [before, sent] = [server.seen.slice(0, 2), server.seen.slice(2)];
  expect(before.map(({ headers }) => headers["x-table"])).toEqual(["load_0", "load_1"]);
  expect(run.offered).toBeGreaterThan(320);
  expect(run.offered).toBeLessThan(480);
  expect(run.accepted).toBe(run.offered);
  expect(run.failed).toBe(0);
  const { ingest, one, health } = run.byRequest;
  // Each of the two generators is within one request of its shares.
  expect(Math.abs((ingest?.accepted ?? 0) - run.offered * 0.5)).toBeLessThanOrEqual(2);
  expect(Math.abs((one?.accepted ?? 0) - run.offered * 0.3)).toBeLessThanOrEqual(2);
  expect(Math.abs((health?.accepted ?? 0) - run.offered * 0.2)).toBeLessThanOrEqual(2);
  expect(run.rowsAcknowledged).toBe((ingest?.accepted ?? 0) * 3);
  const ingested = sent.filter(({ path }) => path === "/v1/ingest");
  expect(run.bytesAcknowledged).toBe(ingested.reduce((sum, { body }) => sum + body.length, 0));
  expect(new Set(ingested.map(({ headers }) => headers["x-idempotency-key"])).size).toBe(ingested.length);
  expect(new Set(ingested.map(({ headers }) => headers["x-table"]))).toEqual(new Set(["load_0", "load_1"]));
  expect(sent.filter(({ path }) => path === "/v1/query").every(({ body }) => body.toString() === "SELECT 1")).toBe(
    true,
  );
  expect(sent.filter(({ path }) => path === "/health").every(({ method }) => method === "GET")).toBe(true);
});

test("refusals and failures are counted apart, and the first failure is told", async () => {
  let count = 0;
  await using server = await startScriptedServer((_, response) => {
    const status = [200, 429, 500][count++ % 3] ?? 200;
    response.writeHead(status).end(status === 500 ? "broken" : "{}");
    return true;
  });
  const run = await driven(
    server.url,
    `clients = 3
     rate = "90/s"
     duration = "1 s"
     [health]`,
  );
  expect(run).toMatchObject({ offered: 90, accepted: 30, refused: 30, failed: 30 });
  expect(run.firstFailure).toBe("the answer was 500: broken");
});

test("a broken connection is a failure, and the next request has another", async () => {
  let count = 0;
  await using server = await startScriptedServer((_, response) => {
    if (count++ !== 5) return false;
    response.destroy();
    return true;
  });
  const run = await driven(
    server.url,
    `clients = 1
     rate = "50/s"
     duration = "1 s"
     [health]`,
  );
  expect(run).toMatchObject({ offered: 50, accepted: 49, failed: 1 });
});

test("a closed loop sends when it was answered, and can be run again with other keys", async () => {
  await using server = await startScriptedServer();
  const profile = profileOf(`
    clients = 2
    rate = "closed"
    duration = "300 ms"
    [ingest]
    rows = 1
  `);
  const load = await openLoad({ url: server.url, profile, seed: 1, signal });
  const runs = [await load.run(), await load.run({ durationMs: 200 }), await load.run({ rate: { perSecond: 20 } })];
  await load.close();
  expect(runs.map(({ failed }) => failed)).toEqual([0, 0, 0]);
  // Either client more than once.
  expect(runs[0]?.accepted).toBeGreaterThan(2);
  expect(runs[1]?.seconds).toBe(0.2);
  expect(runs[2]?.offered).toBe(6);
  const keys = server.seen.map(({ headers }) => headers["x-idempotency-key"]);
  expect(new Set(keys).size).toBe(keys.length);
});

test("the generator's share of the machine is shown", async () => {
  await using server = await startScriptedServer();
  const run = await driven(server.url, 'clients = 4\nrate = "closed"\nduration = "500 ms"\n[health]');
  expect(run.generatorCpuSeconds).toBeGreaterThan(0);
  expect(run.generatorShare).toBeGreaterThan(0);
  expect(run.generatorShare).toBeLessThan(1.1);
});

test("an abort ends the generators and removes the data before the promise is rejected", async () => {
  await using server = await startScriptedServer();
  const processesBefore = descendantsOf(process.pid);
  const stop = new AbortController();
  const text = 'clients = 4\nrate = "50/s"\nduration = "60 s"\n[ingest]\nrows = 1';
  const run = driven(server.url, text, { signal: stop.signal, processes: 2 });
  const ended = run.then(
    () => "ended well",
    (error: unknown) => messageOf(error),
  );
  await eventually(() => server.seen.length > 5);
  expect(descendantsOf(process.pid).length).toBe(processesBefore.length + 2);
  expect(await readdir(temporary)).toHaveLength(1);
  stop.abort(new Error("enough"));
  expect(await ended).toBe("enough");
  expect(descendantsOf(process.pid)).toEqual(processesBefore);
  expect(await readdir(temporary)).toEqual([]);
});

test("a profile that asks for the saturation has no rate to run at", async () => {
  await using server = await startScriptedServer();
  const text = 'clients = 1\nrate = "saturation"\nduration = "1 s"\n[health]';
  await expect(driven(server.url, text)).rejects.toThrow("search for it with a rate for each run");
  await expect(driven("https://127.0.0.1:1", text)).rejects.toThrow("say which ca has signed its certificate");
});

test("a server that is not there is told of, and leaves nothing", async () => {
  const text = 'clients = 1\nrate = "closed"\nduration = "1 s"\n[ingest]\nrows = 1';
  await expect(driven("http://127.0.0.1:9", text)).rejects.toThrow("a load generator ended early");
  expect(await readdir(temporary)).toEqual([]);
});

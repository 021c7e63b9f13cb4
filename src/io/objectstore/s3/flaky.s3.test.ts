import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../core/gates.test-kit.ts";
import { systemClock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import { type Metrics, createMetrics } from "../../../core/metrics.ts";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { seededRandom } from "../../../core/random.ts";
import { ObjectNotFound } from "../objectstore.ts";
import {
  type Meddling,
  type MeddlingProxy,
  type SeenRequest,
  errorXml,
  startMeddlingProxy,
} from "./meddling-proxy.test-kit.ts";
import { type S3StoreOptions, openS3Store } from "./s3.ts";
import { storeOptions } from "./s3.test-kit.ts";
import { sharedVersitygw, type Versitygw } from "./versitygw.test-kit.ts";

const SLOW_DOWN: Meddling = { kind: "answer", status: 503, body: errorXml("SlowDown") };
const QUICK = { backoffMs: 2, backoffMaxMs: 10 };

describe.skipIf(lacks("S3 server"))("s3 store behind a bad network", () => {
  let server: Versitygw;
  let proxy: MeddlingProxy;
  beforeAll(async () => (server = await sharedVersitygw()));
  afterAll(() => server.stop());
  afterEach(() => proxy.close());

  /** A store whose requests a proxy meddles with. */
  async function openBehind(
    meddle: (request: SeenRequest, index: number) => Meddling | undefined,
    limits: S3StoreOptions["limits"] = {},
  ) {
    proxy = await startMeddlingProxy(server.endpoint, meddle);
    const metrics = createMetrics();
    const bucket = await server.makeBucket();
    const options = storeOptions(server, {
      bucket,
      metrics,
      endpoint: proxy.endpoint,
      limits: { ...QUICK, ...limits },
    });
    return { store: openS3Store(options), direct: openS3Store(storeOptions(server, { bucket })), metrics, bucket };
  }

  const counted = async (metrics: Metrics, labels: { kind?: string; outcome?: string }) => {
    const { values } = await metrics.objstoreRequests.get();
    const matching = values.filter(
      (one) =>
        (labels.kind ?? one.labels.kind) === one.labels.kind &&
        (labels.outcome ?? one.labels.outcome) === one.labels.outcome,
    );
    return matching.reduce((sum, { value }) => sum + value, 0);
  };

  it("gets everything right while a third of the requests fail, connections are cut and answers late", async () => {
    const random = drawnRandom();
    const { store, metrics } = await openBehind(
      () => {
        const draw = random.next();
        if (draw < 0.2) return SLOW_DOWN;
        if (draw < 0.33) return { kind: "answer", status: 503 };
        if (draw < 0.38) return { kind: "cut" };
        if (draw < 0.43) return { kind: "cut_answer" };
        if (draw < 0.46) return { kind: "lose_answer" };
        return draw < 0.6 ? { kind: "delay", delayMs: 50 } : undefined;
      },
      { attempts: 20, attemptTimeoutMs: 5_000 },
    );
    const startedMs = systemClock.monotonicMs();
    const objects = new Map(
      Array.from({ length: 60 }, (_, i) => [
        `p/t${i % 4}/${String(i).padStart(2, "0")}`,
        random.fill(new Uint8Array(i * 999)),
      ]),
    );
    await Promise.all([...objects].map(([key, bytes]) => store.put(key, bytes)));
    await Promise.all(
      [...objects].map(async ([key, bytes]) => {
        expect(Buffer.compare(await store.get(key), bytes)).toBe(0);
        expect(Buffer.compare(await store.get(key, { offset: 100, length: 500 }), bytes.subarray(100, 600))).toBe(0);
        expect((await store.head(key))?.sizeBytes).toBe(bytes.length);
      }),
    );
    await expect(store.get("p/none")).rejects.toThrow(ObjectNotFound);
    expect((await Array.fromAsync(store.list("p/"))).map(({ key }) => key)).toEqual([...objects.keys()].sort());
    await store.delete([...objects.keys()]);
    expect(await Array.fromAsync(store.list(""))).toEqual([]);
    expect(systemClock.monotonicMs() - startedMs).toBeLessThan(20_000);
    // Each attempt is money.
    const attempts = await counted(metrics, {});
    expect(proxy.seen.length).toBeLessThanOrEqual(attempts);
    // Some died on a connection that had just been cut, and were never seen.
    expect(proxy.seen.length).toBeGreaterThanOrEqual(attempts - (await counted(metrics, { outcome: "network" })));
    expect(await counted(metrics, { outcome: "throttled" })).toBeGreaterThan(20);
    const repeated = (await metrics.objstoreRetries.get()).values.reduce((sum, { value }) => sum + value, 0);
    expect(repeated).toBe(
      attempts - (await counted(metrics, { outcome: "ok" })) - (await counted(metrics, { outcome: "not_found" })),
    );
    expect((await metrics.objstoreInFlight.get()).values).toMatchObject([{ value: 0 }]);
    expect((await metrics.objstoreGivenUp.get()).values).toEqual([]);
  });

  it("is done by its deadline when nothing answers, and says what it waited for", async () => {
    const { store, metrics } = await openBehind(() => ({ kind: "hang" }), { attemptTimeoutMs: 200, deadlineMs: 700 });
    const startedMs = systemClock.monotonicMs();
    const outcome = store.get("some/key");
    await expect(outcome).rejects.toThrow(/failed to get some\/key.*(200|700) ms/);
    await expect(outcome).rejects.toMatchObject({ code: "unavailable" });
    expect(systemClock.monotonicMs() - startedMs).toBeLessThan(8_000);
    expect(proxy.seen.length).toBeGreaterThan(1);
    expect(await counted(metrics, { kind: "get", outcome: "timeout" })).toBe(proxy.seen.length);
  });

  it("gives up after its attempts, naming the operation and the key", async () => {
    const { store } = await openBehind(() => SLOW_DOWN, { attempts: 3 });
    const outcome = store.put("some/key", Buffer.from("x"));
    await expect(outcome).rejects.toThrow("the object store failed to put some/key in 3 attempts: SlowDown, HTTP 503");
    await expect(outcome).rejects.toBeInstanceOf(EngineError);
    await expect(outcome).rejects.toMatchObject({ code: "unavailable" });
    expect(proxy.seen.length).toBe(3);
  });

  it.each([400, 403, 405, 409, 501])("does not repeat what is answered with %i", async (status) => {
    const { store } = await openBehind(() => ({ kind: "answer", status, body: errorXml("Whatever") }));
    await expect(store.put("a", Buffer.from("x"))).rejects.toMatchObject({ code: "unavailable" });
    expect(proxy.seen.length).toBe(1);
  });

  it.each([408, 429, 500, 502, 503, 504])("repeats what is answered with %i", async (status) => {
    const { store, direct } = await openBehind((_request, index) =>
      index === 0 ? { kind: "answer", status } : undefined,
    );
    await store.put("a", Buffer.from("x"));
    expect(Buffer.from(await direct.get("a")).toString()).toBe("x");
  });

  it("asks again when the answer that tells of a missing object is cut", async () => {
    const cutFirst = (_request: SeenRequest, index: number) =>
      index === 0 ? ({ kind: "cut_answer" } as const) : undefined;
    const { store, metrics } = await openBehind(cutFirst);
    await expect(store.get("none")).rejects.toThrow(ObjectNotFound);
    expect(await counted(metrics, { kind: "get", outcome: "network" })).toBe(1);
  });

  it.each([
    [507, "Whatever"],
    [403, "QuotaExceeded"],
    [507, "XMinioStorageFull"],
  ])("calls HTTP %i %s a full store", async (status, code) => {
    const { store } = await openBehind(() => ({ kind: "answer", status, body: errorXml(code) }));
    await expect(store.put("a", Buffer.from("x"))).rejects.toMatchObject({ code: "insufficient_storage" });
    expect(proxy.seen.length).toBe(1);
  });

  it("stops at once when the caller leaves, in an attempt as between two", async () => {
    const { store, metrics } = await openBehind(() => ({ kind: "hang" }));
    const controller = new AbortController();
    const get = store.get("a", { signal: controller.signal });
    await expect.poll(() => proxy.seen.length).toBe(1);
    controller.abort(new Error("client left"));
    await expect(get).rejects.toThrow("client left");
    expect(await counted(metrics, { kind: "get", outcome: "aborted" })).toBe(1);
    await proxy.close();

    const { store: throttled } = await openBehind(() => SLOW_DOWN, {
      backoffMs: 60_000,
      backoffMaxMs: 60_000,
      deadlineMs: 300_000,
    });
    const leaving = new AbortController();
    const put = throttled.put("a", Buffer.from("x"), { signal: leaving.signal });
    await expect.poll(() => proxy.seen.length).toBe(1);
    leaving.abort(new Error("client left too"));
    await expect(put).rejects.toThrow("client left too");
  });

  it.each([
    ["whole", 10_000, 0],
    ["in parts", 7_000_000, 2],
  ])("reads again what arrived damaged, of an object uploaded %s", async (_how, sizeBytes, parts) => {
    let flips = 1;
    const { store, metrics } = await openBehind(
      ({ method }) => (method === "GET" && flips-- > 0 ? { kind: "flip" } : undefined),
      { multipartBytes: 6_000_000, partBytes: 5_242_880, attempts: 3 },
    );
    const bytes = seededRandom(1).fill(new Uint8Array(sizeBytes));
    await store.put("a", bytes);
    expect(proxy.seen.filter(({ url }) => url.includes("partNumber")).length).toBe(parts);
    expect(Buffer.compare(await store.get("a"), bytes)).toBe(0);
    expect(await counted(metrics, { kind: "get", outcome: "damaged" })).toBe(1);
    flips = 3;
    await expect(store.get("a")).rejects.toThrow(/failed to get a in 3 attempts: .*checksum/i);
    expect(await counted(metrics, { kind: "get", outcome: "damaged" })).toBe(4);
  });

  it("keeps to its number of connections, and has every request wait its turn", async () => {
    const { store } = await openBehind(() => ({ kind: "delay", delayMs: 10 }), { concurrentRequests: 8 });
    await store.put("a", Buffer.from("here"));
    const found = await Promise.all(Array.from({ length: 200 }, () => store.get("a")));
    expect(found.every((bytes) => Buffer.from(bytes).toString() === "here")).toBe(true);
    expect(proxy.mostConnections()).toBeLessThanOrEqual(8);
  });

  it("waits for a connection no longer than its deadline", async () => {
    const { store } = await openBehind(() => ({ kind: "hang" }), {
      concurrentRequests: 1,
      deadlineMs: 300,
      attemptTimeoutMs: 5_000,
    });
    const outcomes = await Promise.allSettled(["a", "b", "c"].map((key) => store.get(key)));
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    await expect(store.get("d")).rejects.toThrow("not done within 300 ms");
  });
});

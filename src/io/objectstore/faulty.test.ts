import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { silentLog } from "../../core/log.ts";
import { seededRandom, systemRandom } from "../../core/random.ts";
import { describeObjectStore } from "./contract.test-kit.ts";
import { FaultyStore, InjectedFault } from "./faulty.test-kit.ts";
import type { FaultRates } from "./faulty.test-kit.ts";
import { openFilesystemStore } from "./filesystem.ts";
import type { ObjectStore } from "./objectstore.ts";

async function openBase(): Promise<{ inner: ObjectStore; dispose: () => Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), "engine-faulty-"));
  const inner = await openFilesystemStore({ root, random: systemRandom, log: silentLog });
  return { inner, dispose: () => rm(root, { recursive: true }) };
}

describeObjectStore("faulty, with no faults", async () => {
  const { inner, dispose } = await openBase();
  return { store: new FaultyStore({ inner, clock: new ManualClock(), random: seededRandom(1) }), dispose };
});

describe("faulty store", () => {
  let base: Awaited<ReturnType<typeof openBase>>;
  let clock: ManualClock;
  let store: FaultyStore;
  beforeEach(async () => {
    base = await openBase();
    clock = new ManualClock();
    store = new FaultyStore({ inner: base.inner, clock, random: seededRandom(7) });
  });
  afterEach(() => base.dispose());

  const hello = Buffer.from("hello, world");
  const size = async (key: string) => (await base.inner.head(key))?.sizeBytes;

  it("fails before, after and in the middle of a put", async () => {
    store.script(
      { operation: "put", keyHolds: "before", fault: { kind: "fail_before" } },
      { operation: "put", keyHolds: "after", fault: { kind: "fail_after" } },
      { operation: "put", keyHolds: "torn", fault: { kind: "tear" } },
    );
    for (const key of ["before", "after", "torn"]) await expect(store.put(key, hello)).rejects.toThrow(InjectedFault);
    expect(await size("before")).toBeUndefined();
    expect(await size("after")).toBe(hello.length);
    expect(await size("torn")).toBeLessThan(hello.length);
    expect(store.calls).toEqual({ put: 3, get: 0, head: 0, list: 0, delete: 0 });
    for (const key of ["before", "after", "torn"]) await store.put(key, hello);
    expect(await size("torn")).toBe(hello.length);
  });

  it("treats a file as it does bytes", async () => {
    const folder = await mkdtemp(join(tmpdir(), "engine-faulty-"));
    const path = join(folder, "file");
    await writeFile(path, hello);
    store.script(
      { operation: "put", keyHolds: "after", fault: { kind: "fail_after" } },
      { operation: "put", keyHolds: "torn", fault: { kind: "tear" } },
    );
    for (const key of ["after", "torn"]) await expect(store.putFile(key, path)).rejects.toThrow(InjectedFault);
    expect(await size("after")).toBe(hello.length);
    expect(await size("torn")).toBeLessThan(hello.length);
    await store.putFile("torn", path);
    expect(await size("torn")).toBe(hello.length);
    expect(store.calls.put).toBe(3);
    store.script({ operation: "put", fault: { kind: "delay", afterMs: 10 } });
    const put = Promise.allSettled([store.putFile("crashed", path)]);
    await until(async () => (await size("crashed")) !== undefined);
    await store.crash();
    expect((await put).map(({ status }) => status)).toEqual(["rejected"]);
    await rm(folder, { recursive: true });
  });

  it("strikes the nth call, as often as told, with the error given", async () => {
    const error = new EngineError("insufficient_storage", "full");
    store.script({ operation: "put", skip: 1, times: 2, fault: { kind: "fail_before", error } });
    const outcomes: string[] = [];
    for (const key of ["a", "b", "c", "d"]) {
      outcomes.push(
        await store.put(key, hello).then(
          () => "stored",
          (reason: unknown) => (reason === error ? "full" : "else"),
        ),
      );
    }
    expect(outcomes).toEqual(["stored", "full", "full", "stored"]);
  });

  it("fails every other operation too", async () => {
    await store.put("a", hello);
    await store.put("b", hello);
    for (const operation of ["get", "head", "list", "delete"] as const) {
      store.script({ operation, fault: { kind: "fail_before" } });
    }
    await expect(store.get("a")).rejects.toThrow(InjectedFault);
    await expect(store.head("a")).rejects.toThrow(InjectedFault);
    await expect(Array.fromAsync(store.list(""))).rejects.toThrow(InjectedFault);
    await expect(store.delete(["a"])).rejects.toThrow(InjectedFault);
    expect(await size("a")).toBe(hello.length);
    store.script({ operation: "delete", fault: { kind: "tear" } });
    await expect(store.delete(["a", "b"])).rejects.toThrow(InjectedFault);
    expect(await size("b")).toBe(hello.length);
  });

  it("delays by the clock it is given", async () => {
    store.script({ operation: "put", fault: { kind: "delay", beforeMs: 100, afterMs: 50 } });
    let done = false;
    const put = store.put("a", hello).then(() => (done = true));
    await flush();
    expect(await size("a")).toBeUndefined();
    clock.advance(100);
    await until(async () => (await size("a")) !== undefined);
    let waitedMs = 0;
    await until(async () => {
      if (!done) clock.advance(1);
      if (!done) waitedMs++;
      return done;
    });
    await put;
    expect(waitedMs).toBeGreaterThanOrEqual(50);
  });

  it("keeps what was acknowledged over a crash, and nothing under way succeeds", async () => {
    await store.put("acknowledged", hello);
    store.script({ operation: "put", keyHolds: "early", fault: { kind: "delay", beforeMs: 10 } });
    store.script({ operation: "put", keyHolds: "late", times: 30, fault: { kind: "delay", afterMs: 10 } });
    const late = Array.from({ length: 30 }, (_, i) => `late/${i}`);
    const outcomes = Promise.allSettled(["early", ...late].map((key) => store.put(key, hello)));
    await until(async () => (await Promise.all(late.map(size))).every((sizeBytes) => sizeBytes !== undefined));
    await store.crash();
    expect((await outcomes).map((outcome) => outcome.status)).toEqual(Array.from({ length: 31 }, () => "rejected"));
    await expect(store.get("acknowledged")).rejects.toThrow("crashed");

    store.restart();
    expect(Buffer.from(await store.get("acknowledged"))).toEqual(hello);
    expect(await store.head("early")).toBeUndefined();
    const fates = (await Promise.all(late.map(size))).map((left) =>
      left === undefined ? "lost" : left === hello.length ? "kept" : "torn",
    );
    expect(new Set(fates)).toEqual(new Set(["kept", "lost", "torn"]));
  });

  it("does not acknowledge what the crash overtook", async () => {
    const put = store.put("a", Buffer.alloc(5_000_000));
    const crash = store.crash();
    await expect(put).rejects.toThrow("crashed");
    await crash;
  });

  it("repeats a run of faults from its seed", async () => {
    const rates: FaultRates = { failBefore: 0.2, failAfter: 0.2, tear: 0.2 };
    const run = async (seed: number) => {
      const { inner, dispose } = await openBase();
      const faulty = new FaultyStore({ inner, clock, random: seededRandom(seed), rates });
      const trace: string[] = [];
      for (let i = 0; i < 60; i++) {
        const outcome = await faulty.put(`k${i}`, hello).then(
          () => "ok",
          (error: Error) => error.message,
        );
        trace.push(`${outcome} ${(await inner.head(`k${i}`))?.sizeBytes}`);
      }
      await dispose();
      return trace;
    };
    const first = await run(3);
    expect(await run(3)).toEqual(first);
    expect(await run(4)).not.toEqual(first);
    expect(first.filter((line) => line.startsWith("ok"))).not.toHaveLength(60);
    for (const kind of ["fail_before", "fail_after", "tear"]) expect(first.join("\n")).toContain(kind);
  });
});

const flush = () => new Promise((resolve) => setImmediate(resolve));

async function until(condition: () => Promise<boolean>): Promise<void> {
  const startedMs = performance.now();
  while (performance.now() - startedMs < 10_000) {
    if (await condition()) return;
    await flush();
  }
  throw new Error("waited too long");
}

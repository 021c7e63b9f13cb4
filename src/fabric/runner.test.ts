import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ManualClock, sleep } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import { silentLog } from "../core/log.ts";
import { seededRandom } from "../core/random.ts";
import { JobFailure, type LogLine, type RunningJob } from "./handler.ts";
import { leaseLost } from "./refusals.ts";
import { NodeRefused } from "./runner-failure.ts";
import { JobRunner, type JobRunnerOptions } from "./runner.ts";
import { claimedJob, FakePort, LEASE_MS } from "./runner.test-kit.ts";

const lost = () => leaseLost({ jobId: "a", holder: "w1", fence: 1 });
const away = () => new EngineError("unavailable", "away");

let clock: ManualClock;
let port: FakePort;
let runner: JobRunner;
let running: Promise<void>;
/** Runs that a test ends by hand, by the id of the job. */
let runs: Map<string, RunningJob & { end: PromiseWithResolvers<unknown> }>;

function start(
  run: (job: RunningJob) => Promise<unknown> = byHand,
  slots = 2,
  more: Partial<JobRunnerOptions> = {},
): void {
  runner = new JobRunner({
    ...more,
    port,
    handlers: [{ kind: "test.task", run }],
    slots,
    clock,
    random: seededRandom(1),
    log: silentLog,
  });
  running = runner.run();
  running.catch(() => undefined);
}

function byHand(job: RunningJob): Promise<unknown> {
  const end = Promise.withResolvers<unknown>();
  runs.set(job.id, { ...job, end });
  return end.promise;
}

async function runOf(id: string) {
  await expect.poll(() => runs.has(id)).toBe(true);
  const run = runs.get(id);
  if (run === undefined) throw new Error("it does not run");
  return run;
}

/** Lets time pass in small steps, with room for what each brings about. */
async function pass(ms: number, stepMs = 250): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    clock.advance(Math.min(stepMs, ms - passed));
    await new Promise(setImmediate);
  }
}

beforeEach(() => {
  clock = new ManualClock();
  port = new FakePort(clock);
  runs = new Map();
});
afterEach(() => {
  runner.stop();
  for (const { end } of runs.values()) end.resolve(null);
});

describe("claims", () => {
  it("asks for as many jobs as there are free slots, one claim at a time", async () => {
    start(byHand, 3);
    expect(port.claims.map(({ max, kinds }) => [max, kinds])).toEqual([[3, ["test.task"]]]);
    port.add(claimedJob("a"), claimedJob("b"));
    await runOf("b");
    await expect.poll(() => port.claims.map(({ max }) => max)).toEqual([3, 1]);
    port.add(claimedJob("c"), claimedJob("d"));
    await runOf("c");
    await pass(1_000);
    expect(runner.busy).toBe(3);
    expect(port.claims).toHaveLength(2);
    (await runOf("a")).end.resolve("done");
    await runOf("d");
    expect(port.of("complete")).toEqual(["done"]);
  });

  it("backs off while the fabric is away, up to 30 s, and comes back at once after that", async () => {
    port.before = (verb) => {
      if (verb === "claim") throw away();
    };
    start();
    await pass(300_000);
    const tries = port.claims.length;
    expect(tries).toBeGreaterThan(10);
    expect(tries).toBeLessThan(40);
    port.before = () => undefined;
    await pass(30_000);
    port.add(claimedJob("a"));
    await runOf("a");
  });

  it("is back as soon as it is told to be, however long the fabric was away", async () => {
    port.before = (verb) => {
      if (verb === "claim") throw away();
    };
    start(byHand, 2, { mostAwayMs: 5_000 });
    await pass(300_000);
    expect(port.claims.length).toBeLessThan(130);
    port.before = () => undefined;
    port.add(claimedJob("a"));
    await pass(5_000);
    expect(runs.has("a")).toBe(true);
  });

  it("does not ask again at once when it was sent away before its time", async () => {
    start();
    const empty = () => Promise.resolve([]);
    let asked = 0;
    port.claim = () => (asked++, empty());
    port.add(claimedJob("a"));
    await runOf("a");
    await pass(10_000);
    expect(asked).toBeGreaterThan(5);
    expect(asked).toBeLessThan(25);
  });

  it("ends with the reason when the fabric refuses the node, and stops what runs", async () => {
    start();
    port.add(claimedJob("a"));
    const { signal } = await runOf("a");
    port.before = () => {
      throw new NodeRefused("the token was revoked");
    };
    await pass(LEASE_MS / 2);
    await expect(running).rejects.toThrow("the token was revoked");
    expect(signal.aborted).toBe(true);
    expect(port.calls).toEqual([]);
  });
});

describe("outcomes", () => {
  it.each([
    ["another error", new Error("odd"), { error: "odd", retryable: true }],
    ["an outage", away(), { error: "away", retryable: true }],
    ["a fault of the job", new EngineError("invalid_query", "no"), { error: "no", retryable: false }],
    [
      "a limit",
      new EngineError("too_many_requests", "full", { headers: { "Retry-After": "7" } }),
      { error: "full", retryable: true, retryAfterMs: 7_000 },
    ],
    ["a failure", new JobFailure({ error: "mine", retryAfterMs: 5 }), { error: "mine", retryAfterMs: 5 }],
  ])("says how %s fails the job", async (_, error, failure) => {
    start(() => Promise.reject(error));
    port.add(claimedJob("a"));
    await expect.poll(() => port.of("fail")).toEqual([failure]);
    expect(port.of("complete")).toEqual([]);
  });

  it("fails for good what has no result that can be kept", async () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    start(({ id }) => Promise.resolve(id === "a" ? circle : "large"));
    port.complete = () => Promise.reject(new EngineError("body_too_large", "the result is too large"));
    port.add(claimedJob("a"), claimedJob("b"));
    await expect.poll(() => port.of("fail")).toHaveLength(2);
    expect(port.of("fail")).toEqual([
      { error: expect.stringMatching(/^the result is no JSON value/), retryable: false },
      { error: "the result is too large", retryable: false },
    ]);
  });

  it("says again what it could not say, as long as the lease lasts", async () => {
    let failures = 3;
    port.before = (verb) => {
      if (verb === "complete" && failures-- > 0) throw new Error("connection reset");
    };
    start(() => Promise.resolve(7));
    port.add(claimedJob("a"));
    await pass(5_000);
    expect(port.of("complete")).toEqual([7]);
    expect(runner.busy).toBe(0);
  });

  it("gives up on it when the lease must have ended", async () => {
    port.before = (verb) => {
      if (verb !== "claim") throw away();
    };
    start(() => Promise.resolve(7));
    port.add(claimedJob("a"));
    await pass(LEASE_MS - 1_000);
    expect(runner.busy).toBe(1);
    await pass(1_500);
    expect(runner.busy).toBe(0);
    port.before = () => undefined;
    await pass(LEASE_MS);
    expect(port.calls).toEqual([]);
  });
});

describe("the lease", () => {
  it("is renewed at a third of its length, for as long as the handler runs", async () => {
    start();
    port.add(claimedJob("a"));
    const { signal, end } = await runOf("a");
    await pass(LEASE_MS * 10);
    expect(signal.aborted).toBe(false);
    expect(port.of("extend").length).toBeGreaterThanOrEqual(29);
    expect(port.of("extend")[0]).toBe(LEASE_MS);
    end.resolve(1);
    await expect.poll(() => port.of("complete")).toEqual([1]);
    const renewals = port.of("extend").length;
    await pass(LEASE_MS * 2);
    expect(port.of("extend")).toHaveLength(renewals);
  });

  it("is lost when the fabric says so: the handler is told, and nothing more is written", async () => {
    start(byHand, 1);
    port.add(claimedJob("a"));
    const job = await runOf("a");
    port.before = (verb) => {
      if (verb === "extend") throw lost();
    };
    job.progress({ done: 1 });
    await pass(LEASE_MS / 2);
    expect(job.signal.reason).toMatchObject({ code: "lease_lost" });
    const said = port.calls.length;
    job.progress({ done: 2 });
    job.log("info", "more");
    await expect(job.credential("c")).rejects.toMatchObject({ code: "forbidden" });
    await pass(LEASE_MS);
    // It runs on: its slot is taken.
    expect([runner.busy, port.claims.length]).toEqual([1, 1]);
    job.end.resolve("late");
    await expect.poll(() => port.claims.length).toBe(2);
    await pass(5_000);
    expect(port.calls).toHaveLength(said);
  });

  it("leaves nothing that is tried for ever when it is lost", async () => {
    start();
    port.add(claimedJob("a"));
    const job = await runOf("a");
    port.before = (verb) => {
      if (verb === "extend" || verb === "progress" || verb === "log") throw away();
    };
    job.progress(1);
    job.log("info", "a line");
    await pass(LEASE_MS);
    expect(job.signal.aborted).toBe(true);
    job.end.resolve(null);
    await pass(1_000);
    const timers = vi.spyOn(clock, "after");
    await pass(10_000);
    expect(timers).not.toHaveBeenCalled();
  });

  it("is lost when no renewal gets through in time, also one that hangs", async () => {
    start();
    port.add(claimedJob("a"));
    const { signal } = await runOf("a");
    port.before = (verb) => (verb === "extend" ? new Promise<void>(() => undefined) : undefined);
    await pass(LEASE_MS - 500);
    expect(signal.aborted).toBe(false);
    await pass(500);
    expect(signal.aborted).toBe(true);
  });

  it("survives renewals that fail for less than that", async () => {
    start();
    port.add(claimedJob("a"));
    const { signal } = await runOf("a");
    port.before = (verb) => {
      if (verb === "extend") throw away();
    };
    await pass(LEASE_MS - 5_000);
    port.before = () => undefined;
    await pass(LEASE_MS);
    expect(signal.aborted).toBe(false);
  });

  it("is renewed before the handler starts when the claim has waited longer than it lasts", async () => {
    start();
    clock.advance(25_000);
    // The way to the fabric and back takes its time.
    port.before = (verb) => (verb === "extend" ? sleep(clock, 500) : undefined);
    port.add(claimedJob("a", { leaseMs: 10_000 }));
    await pass(1_000);
    await runOf("a");
    expect(port.of("extend")).toContain(10_000);
    await pass(9_000);
    expect(runs.get("a")?.signal.aborted).toBe(false);
  });
});

describe("cancelling", () => {
  it.each(["the listener", "the answer to a renewal", "the answer to progress"])(
    "reaches the handler by %s",
    async (by) => {
      start(async (job) => {
        const run = byHand(job);
        job.signal.addEventListener("abort", () => runs.get(job.id)?.end.reject(job.signal.reason));
        return await run;
      });
      port.add(claimedJob("a"));
      const job = await runOf("a");
      port.cancel("another");
      if (by === "the listener") port.cancel("a");
      else port.cancelRequested = true;
      if (by === "the answer to progress") job.progress(1);
      await pass(by === "the answer to a renewal" ? LEASE_MS / 2 : 1_000);
      expect(port.of("fail")).toEqual([{ error: "the job was cancelled", retryable: false }]);
    },
  );

  it("leaves the handler the choice to complete", async () => {
    start();
    port.add(claimedJob("a"));
    const job = await runOf("a");
    port.cancel("a");
    expect(job.signal.aborted).toBe(true);
    job.end.resolve("all the same");
    await expect.poll(() => port.of("complete")).toEqual(["all the same"]);
  });
});

describe("progress and lines", () => {
  it("writes at most one snapshot a second, and the last one before the end", async () => {
    start();
    port.add(claimedJob("a"));
    const job = await runOf("a");
    for (let n = 0; n <= 40; n++) {
      job.progress({ n });
      await pass(100, 100);
    }
    const written = port.of("progress").length;
    expect(written).toBeGreaterThanOrEqual(4);
    expect(written).toBeLessThanOrEqual(6);
    job.progress({ n: "last" });
    job.end.resolve(null);
    await expect.poll(() => port.of("complete")).toHaveLength(1);
    expect(port.calls.at(-2)).toMatchObject({ verb: "progress", value: { n: "last" } });
  });

  it("says in the log, once, that progress cannot be kept", async () => {
    start();
    port.progress = () => Promise.reject(new EngineError("body_too_large", "the progress is larger than 3 bytes"));
    port.add(claimedJob("a"));
    const job = await runOf("a");
    for (let n = 0; n < 5; n++) {
      job.progress({ n });
      await pass(1_000);
    }
    expect(port.of("log").flat()).toEqual([
      { level: "warn", message: "progress is not kept: the progress is larger than 3 bytes" },
    ]);
    job.end.resolve(1);
    await expect.poll(() => port.of("complete")).toEqual([1]);
  });

  it("writes lines in order, in batches, also through an outage, before the end", async () => {
    start();
    port.add(claimedJob("a"));
    const job = await runOf("a");
    for (let n = 0; n < 150; n++) job.log("info", `line ${n}`);
    port.before = (verb) => {
      if (verb === "log") throw away();
    };
    await pass(3_000);
    port.before = () => undefined;
    for (let n = 150; n < 250; n++) job.log("info", `line ${n}`);
    job.end.resolve(null);
    await expect.poll(() => port.of("complete")).toHaveLength(1);
    const batches = port.of("log") as LogLine[][];
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(100);
    expect(batches.flat().map(({ message }) => message)).toEqual(Array.from({ length: 250 }, (_, n) => `line ${n}`));
    expect(port.calls.at(-1)?.verb).toBe("complete");
  });

  it("drops lines that come faster than they can be written, and says how many", async () => {
    start();
    port.add(claimedJob("a"));
    const job = await runOf("a");
    for (let n = 0; n < 3_000; n++) job.log("info", `line ${n}`);
    job.end.resolve(null);
    await expect.poll(() => port.of("complete")).toHaveLength(1);
    const lines = port.of("log").flat() as LogLine[];
    expect(lines).toHaveLength(1_001);
    expect(lines.at(-1)).toEqual({ level: "warn", message: "2000 lines were dropped: they came too fast" });
  });
});

describe("credentials", () => {
  it("are those that the job names, and no others", async () => {
    start();
    port.add(claimedJob("a", { credentials: ["c1"] }));
    const job = await runOf("a");
    expect(await job.credential("c1")).toBe("secret of c1");
    await expect(job.credential("c2")).rejects.toMatchObject({ code: "forbidden" });
    expect(port.of("credential")).toEqual(["c1"]);
  });
});

describe("drain", () => {
  it("claims nothing more, and waits for what runs", async () => {
    start();
    port.add(claimedJob("a"));
    const { end, signal } = await runOf("a");
    const drained = runner.drain(10_000);
    await running;
    port.add(claimedJob("b"));
    await pass(5_000);
    end.resolve("in time");
    await drained;
    expect([signal.aborted, port.of("complete"), port.of("release")]).toEqual([false, ["in time"], []]);
    expect(runs.has("b")).toBe(false);
  });

  it("gives jobs back after the grace, of handlers that obey and of those that do not", async () => {
    start(async (job) => {
      const run = byHand(job);
      if (job.id === "a") job.signal.addEventListener("abort", () => runs.get("a")?.end.reject(job.signal.reason));
      return await run;
    });
    port.add(claimedJob("a"), claimedJob("b"));
    const [a, b] = [await runOf("a"), await runOf("b")];
    a.log("info", "said before");
    b.progress(5);
    const drained = runner.drain(10_000);
    await pass(9_500);
    expect(a.signal.aborted).toBe(false);
    await pass(5_000);
    await drained;
    expect(port.calls.filter(({ verb }) => verb === "release").map(({ jobId }) => jobId)).toEqual(["a", "b"]);
    expect(port.of("log")).toEqual([[{ level: "info", message: "said before" }]]);
    expect(port.of("fail")).toEqual([]);
    const said = port.calls.length;
    b.end.resolve("too late");
    await pass(LEASE_MS * 2);
    expect(port.calls).toHaveLength(said);
  });

  it("gives back what a claim brings that was under way", async () => {
    start();
    const late = Promise.withResolvers<void>();
    port.before = (verb) => (verb === "claim" ? late.promise : undefined);
    port.add(claimedJob("a"));
    await runOf("a");
    await expect.poll(() => port.claims.length).toBe(2);
    port.add(claimedJob("b"));
    const drained = runner.drain(0);
    late.resolve();
    await pass(5_000);
    await drained;
    expect(port.calls.filter(({ verb }) => verb === "release").map(({ jobId }) => jobId)).toEqual(["b", "a"]);
  });

  it("ends although the fabric is away", async () => {
    start();
    port.add(claimedJob("a"), claimedJob("b"));
    const { end } = await runOf("a");
    port.before = () => {
      throw away();
    };
    end.resolve("nobody hears it");
    const drained = runner.drain(1_000);
    await pass(6_000);
    await drained;
    port.before = () => undefined;
    await pass(LEASE_MS);
    expect(port.calls).toEqual([]);
  });
});

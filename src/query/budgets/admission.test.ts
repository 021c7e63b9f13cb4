import { describe, expect, test } from "vitest";
import { ManualClock } from "../../core/clock.ts";
import type { EngineError } from "../../core/errors.ts";
import { drawnRandom } from "../../core/drawn-seed.test-kit.ts";
import { Admission, type AdmissionOptions, type Permit, type Refusal } from "./admission.ts";

const NOTHING = { inFlight: 0, tenants: 0, reservedBytes: 0, large: 0, waiting: 0 };
const never = new AbortController().signal;

function admissionOf(options: Partial<AdmissionOptions> = {}) {
  const clock = new ManualClock();
  const refused: Refusal[] = [];
  const larges: number[] = [];
  const admission = new Admission({
    clock,
    maxConcurrent: 0,
    maxPerTenant: 0,
    totalMemoryBytes: 400,
    sparedMemoryBytes: 100,
    maxLarge: 3,
    retryAfterSecs: 7,
    onRefused: (reason) => refused.push(reason),
    onLarge: (count) => larges.push(count),
    ...options,
  });
  const enter = (tenant = "default", memoryBytes = 100): Permit => admission.enter({ tenant, memoryBytes });
  return { admission, clock, refused, larges, enter };
}

/** Whether a promise is settled by now. */
async function stateOf(promise: Promise<void>): Promise<"held" | "waits" | "failed"> {
  for (let i = 0; i < 5; i++) await Promise.resolve();
  const settled = promise.then(
    () => "held" as const,
    () => "failed" as const,
  );
  return Promise.race([
    settled,
    Promise.resolve().then(async () => {
      for (let i = 0; i < 5; i++) await Promise.resolve();
      return "waits" as const;
    }),
  ]);
}

const tooMany = { code: "too_many_requests", status: 429, details: { headers: { "Retry-After": "7" } } };

describe("queries in flight", () => {
  test("past the limit are refused at once, until one leaves", () => {
    const { admission, enter, refused } = admissionOf({ maxConcurrent: 2 });
    const first = enter();
    enter("other");
    expect(() => enter("third")).toThrow(expect.objectContaining(tooMany));
    first.leave();
    first.leave();
    enter("third");
    expect(() => enter()).toThrow(expect.objectContaining(tooMany));
    expect(refused).toEqual(["concurrent", "concurrent"]);
    expect(admission.state).toMatchObject({ inFlight: 2, tenants: 2 });
  });

  test("of one tenant do not count for another; its name has no case", () => {
    const { enter, refused } = admissionOf({ maxPerTenant: 1 });
    const mine = enter("Mine");
    expect(() => enter("mINE")).toThrow(expect.objectContaining(tooMany));
    enter("yours");
    mine.leave();
    enter("mine");
    expect(refused).toEqual(["tenant"]);
  });
});

describe("memory", () => {
  test("is reserved in order of arrival, and never more than there is", async () => {
    const { admission, enter } = admissionOf();
    const [a, b, c, d] = [enter("t", 300), enter("t", 200), enter("t", 100), enter("t", 100)];
    await a.reserve(never);
    const waiting = [b, c, d].map((permit) => permit.reserve(never));
    // 100 would fit, but who came first is first.
    expect(await Promise.all(waiting.map(stateOf))).toEqual(["waits", "waits", "waits"]);
    a.leave();
    expect(await Promise.all(waiting.map(stateOf))).toEqual(["held", "held", "held"]);
    expect(admission.state).toMatchObject({ reservedBytes: 400, waiting: 0 });
    for (const permit of [b, c, d]) permit.leave();
    expect(admission.state).toEqual(NOTHING);
  });

  test("a budget larger than all there is takes all", async () => {
    const { admission, enter } = admissionOf();
    const huge = enter("t", 10_000);
    await huge.reserve(never);
    expect(admission.state.reservedBytes).toBe(400);
    huge.leave();
    expect(admission.state).toEqual(NOTHING);
  });

  test("a wait ends with 429 after a while, with the client, or when the line is full", async () => {
    const { admission, clock, enter, refused } = admissionOf({ maxQueued: 2, maxWaitMs: 50 });
    const all = enter("t", 400);
    await all.reserve(never);
    const client = new AbortController();
    const [late, gone, third] = [enter(), enter(), enter()];
    const lateWait = late.reserve(never).catch((error: EngineError) => error);
    const goneWait = gone.reserve(client.signal).catch((error: Error) => error);
    await expect(third.reserve(never)).rejects.toMatchObject(tooMany);
    client.abort(new Error("left"));
    expect(await goneWait).toMatchObject({ message: "left" });
    clock.advance(49);
    expect(admission.state.waiting).toBe(1);
    clock.advance(1);
    expect(await lateWait).toMatchObject(tooMany);
    expect(refused).toEqual(["memory", "memory"]);
    for (const permit of [late, gone, third, all]) permit.leave();
    expect(admission.state).toEqual(NOTHING);
    await expect(enter().reserve(client.signal)).rejects.toThrow("left");
  });

  test("who waited behind one that gave up is served", async () => {
    const { clock, enter } = admissionOf({ maxWaitMs: 50 });
    await enter("t", 300).reserve(never);
    const head = enter("t", 200)
      .reserve(never)
      .catch((error: EngineError) => error);
    clock.advance(10);
    const next = enter("t", 100).reserve(never);
    clock.advance(40);
    expect(await head).toMatchObject(tooMany);
    expect(await stateOf(next)).toBe("held");
  });
});

describe("large queries", () => {
  test("leave one process and the memory of one query to the others", async () => {
    const { admission, enter, larges } = admissionOf({ maxLarge: 9 });
    const permits = Array.from({ length: 4 }, () => enter());
    for (const permit of permits) await permit.reserve(never);
    expect(permits.map((permit) => permit.grow())).toEqual([true, true, true, false]);
    expect(permits[0]?.grow()).toBe(true);
    expect(admission.state.large).toBe(3);
    const few = admissionOf({ maxLarge: 1 });
    const two = [few.enter(), few.enter()];
    for (const permit of two) await permit.reserve(never);
    expect(two.map((permit) => permit.grow())).toEqual([true, false]);
    for (const permit of permits) permit.leave();
    expect(larges).toEqual([1, 2, 3, 2, 1, 0]);
    expect(admission.state).toEqual(NOTHING);
  });

  test("one runs even where memory is for one query alone", async () => {
    const { enter } = admissionOf({ totalMemoryBytes: 100 });
    const only = enter("t", 100);
    await only.reserve(never);
    expect(only.grow()).toBe(true);
  });

  test("one that outgrew gives everything back, waits for its turn, and holds a permit then", async () => {
    const { admission, clock, enter } = admissionOf({ maxLarge: 1, maxLargeWaitMs: 1_000, maxWaitMs: 10 });
    const [first, second, third] = [enter(), enter(), enter()];
    for (const permit of [first, second, third]) await permit.reserve(never);
    expect([first, second, third].map((permit) => permit.grow())).toEqual([true, false, false]);
    second.outgrow();
    third.outgrow();
    expect(admission.state.reservedBytes).toBe(100);
    const turns = [second.reserve(never), third.reserve(never).catch((error: EngineError) => error)];
    clock.advance(500);
    // Small ones pass.
    const small = enter();
    await small.reserve(never);
    // And none of them becomes large before those that wait.
    first.leave();
    expect(small.grow()).toBe(false);
    await turns[0];
    expect(second.grow()).toBe(true);
    clock.advance(500);
    expect(await turns[1]).toMatchObject(tooMany);
    for (const permit of [second, third, small]) permit.leave();
    expect(admission.state).toEqual(NOTHING);
  });
});

test("whatever happens in whatever order, nothing stays held", async () => {
  const source = drawnRandom();
  const random = (below: number): number => Math.floor(source.next() * below);
  const { admission, clock } = admissionOf({ maxConcurrent: 40, maxPerTenant: 15, maxWaitMs: 30, maxLargeWaitMs: 60 });
  let mostBytes = 0;
  let mostLarge = 0;
  const one = async (): Promise<void> => {
    const client = new AbortController();
    let permit: Permit;
    try {
      permit = admission.enter({ tenant: `t${random(4)}`, memoryBytes: 1 + random(150) });
    } catch {
      return;
    }
    const timer = clock.after(random(80), () => random(3) === 0 && client.abort(new Error("left")));
    try {
      await permit.reserve(client.signal);
      await new Promise<void>((resolve) => clock.after(random(20), resolve));
      if (!permit.grow()) {
        permit.outgrow();
        await permit.reserve(client.signal);
      }
      await new Promise<void>((resolve) => clock.after(random(40), resolve));
    } catch {
      // Refused, or the client left.
    } finally {
      timer.cancel();
      permit.leave();
    }
  };
  const all: Promise<void>[] = [];
  for (let i = 0; i < 2_000; i++) {
    all.push(one());
    if (random(3) === 0) clock.advance(1 + random(5));
    for (let turn = 0; turn < 3; turn++) await Promise.resolve();
    mostBytes = Math.max(mostBytes, admission.state.reservedBytes);
    mostLarge = Math.max(mostLarge, admission.state.large);
  }
  for (let i = 0; i < 200 && admission.state.inFlight > 0; i++) {
    clock.advance(10);
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  }
  await Promise.all(all);
  expect(admission.state).toEqual(NOTHING);
  expect([mostBytes > 200, mostBytes <= 400]).toEqual([true, true]);
  expect([mostLarge > 1, mostLarge <= 3]).toEqual([true, true]);
});

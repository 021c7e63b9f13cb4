import { describe, expect, test } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import { RateLimit } from "./rate-limit.ts";

function setUp(ratePerSec: number, burst: number) {
  const clock = new ManualClock();
  let refused = 0;
  const limit = new RateLimit({ ratePerSec, burst, clock, onRefused: () => refused++ });
  /** How many of so many requests at once pass. */
  const passing = (requests: number, database = "db") =>
    Array.from({ length: requests }, () => retryAfter(database)).filter((secs) => secs === undefined).length;
  const retryAfter = (database = "db"): string | undefined => {
    try {
      limit.take(database);
      return undefined;
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "too_many_requests") throw error;
      return error.details.headers?.["Retry-After"] ?? "";
    }
  };
  return { clock, limit, passing, retryAfter, refused: () => refused };
}

describe("RateLimit", () => {
  test("lets a burst through, then the rate", () => {
    const { clock, passing, refused } = setUp(10, 20);
    expect(passing(50)).toBe(20);
    expect(refused()).toBe(30);
    clock.advance(99);
    expect(passing(5)).toBe(0);
    clock.advance(1);
    expect(passing(5)).toBe(1);
    clock.advance(1_000);
    expect(passing(50)).toBe(10);
    clock.advance(3_600_000);
    expect(passing(50)).toBe(20);
  });

  test("admits the rate over a long time, neither more nor less, whatever the rate", () => {
    for (const rate of [1, 3, 7, 333, 1_000, 99_999]) {
      const { clock, passing } = setUp(rate, rate);
      expect(passing(3 * rate)).toBe(rate);
      let passed = 0;
      for (let ms = 0; ms < 5_000; ms += 50) {
        clock.advance(50);
        passed += passing(Math.ceil(rate / 10) + 1);
      }
      expect(passed, `${rate} per second`).toBe(5 * rate);
    }
  });

  test("a request that is turned away takes nothing", () => {
    const { clock, passing, retryAfter } = setUp(1, 1);
    expect(retryAfter()).toBeUndefined();
    for (let i = 0; i < 100; i++) expect(retryAfter()).toBe("1");
    clock.advance(1_000);
    expect(passing(3)).toBe(1);
  });

  test("Retry-After is when the next token is due, in whole seconds and at least one", () => {
    const { clock, retryAfter } = setUp(1_000, 1);
    expect([retryAfter(), retryAfter()]).toEqual([undefined, "1"]);
    clock.advance(1);
    expect(retryAfter()).toBeUndefined();
    const slow = setUp(1, 3);
    for (let i = 0; i < 3; i++) expect(slow.retryAfter()).toBeUndefined();
    const secs = Number(slow.retryAfter());
    slow.clock.advance(secs * 1_000 - 1);
    expect(slow.retryAfter()).toBe("1");
    slow.clock.advance(1);
    expect(slow.retryAfter()).toBeUndefined();
  });

  test("databases have buckets of their own", () => {
    const { passing } = setUp(1, 2);
    expect([passing(5, "a"), passing(5, "b"), passing(5, "a")]).toEqual([2, 2, 0]);
  });

  test("a rate of 0 sets no limit, and keeps nothing", () => {
    const { passing, limit, refused } = setUp(0, 1);
    expect(passing(10_000)).toBe(10_000);
    expect([refused(), limit.size]).toEqual([0, 0]);
  });

  test("many databases take bounded memory, and those in use keep their bucket", () => {
    const { passing, limit } = setUp(1, 2);
    expect(passing(2, "busy")).toBe(2);
    for (let i = 0; i < 50_000; i++) {
      limit.take(`db${i}`);
      if (i % 5_000 === 0) limit.take(`other${i}`);
    }
    expect(limit.size).toBeLessThanOrEqual(10_000);
    expect(passing(3, "db49999")).toBe(1);
  });
});

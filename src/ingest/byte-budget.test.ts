import { describe, expect, test } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { LIMITS } from "../core/limits.ts";
import { ByteBudget, type Reservation } from "./byte-budget.ts";

function setUp(maxBytes: number) {
  const clock = new ManualClock();
  const refused: string[] = [];
  const used: number[] = [];
  const budget = new ByteBudget({
    maxBytes,
    clock,
    onRefused: (reason) => refused.push(reason),
    onChange: (usedBytes) => used.push(usedBytes),
  });
  return { clock, budget, refused, used };
}

const refusal = expect.objectContaining({
  code: "too_many_requests",
  details: { headers: { "Retry-After": "1" } },
}) as Error;

describe("as a whole", () => {
  test("refuses what does not fit, with Retry-After, and takes it once there is room", () => {
    const { budget, refused, used } = setUp(100);
    const first = budget.reserve("a", 80);
    expect(() => budget.reserve("a", 30)).toThrow(refusal);
    first.settle(70);
    const second = budget.reserve("a", 30);
    expect(budget.usedBytes).toBe(100);
    first.release();
    second.release();
    expect(budget.usedBytes).toBe(0);
    expect([refused, used]).toEqual([["bytes"], [80, 70, 100, 30, 0]]);
  });

  test("a request that finds nothing in flight always fits, and may grow", () => {
    const { budget } = setUp(100);
    const alone = budget.reserve("a", 1_000);
    alone.growTo(2_000);
    expect(() => budget.reserve("b", 1)).toThrow(refusal);
    alone.release();
    expect(budget.usedBytes).toBe(0);
  });

  test("a reservation grows as far as there is room, and keeps what it has when there is none", () => {
    const { budget } = setUp(100);
    const other = budget.reserve("a", 40);
    const growing = budget.reserve("b", 10);
    growing.growTo(60);
    expect(() => growing.growTo(61)).toThrow(refusal);
    growing.growTo(50);
    expect(budget.usedBytes).toBe(100);
    other.release();
    growing.growTo(61);
    expect(budget.usedBytes).toBe(61);
    growing.settle(7);
    growing.release();
    growing.release();
    expect(budget.usedBytes).toBe(0);
  });
});

describe("per database", () => {
  test("one that is alone may use all of it", () => {
    const { budget, refused } = setUp(100);
    for (let i = 0; i < 10; i++) budget.reserve("a", 10);
    expect(() => budget.reserve("a", 1)).toThrow(refusal);
    expect([budget.usedBytes, refused]).toEqual([100, ["bytes"]]);
  });

  test("one holds at most half while another has bytes in flight", () => {
    const { budget, refused } = setUp(100);
    const other = budget.reserve("b", 1);
    budget.reserve("a", 50);
    expect(() => budget.reserve("a", 1)).toThrow(/while others wait at most 50/);
    expect(refused).toEqual(["database_bytes"]);
    budget.reserve("b", 49);
    other.release();
    expect(() => budget.reserve("a", 1)).toThrow(refusal);
  });

  test("that holds for growing, too", () => {
    const { budget } = setUp(100);
    budget.reserve("b", 10);
    budget.reserve("a", 30);
    const growing = budget.reserve("a", 10);
    growing.growTo(20);
    expect(() => growing.growTo(21)).toThrow(refusal);
  });

  test("one that came second is let in when there is room again, and the first is held to its half meanwhile", () => {
    const { budget, clock } = setUp(100);
    const held = Array.from({ length: 10 }, () => budget.reserve("hog", 10));
    expect(() => budget.reserve("small", 10)).toThrow(refusal);
    held.pop()?.release();
    expect(() => budget.reserve("hog", 10)).toThrow(/while others wait/);
    clock.advance(1_000);
    expect(() => budget.reserve("hog", 10)).toThrow(/while others wait/);
    const small = budget.reserve("small", 10);
    expect(budget.usedBytes).toBe(100);
    small.release();
    clock.advance(1_000);
    budget.reserve("hog", 10);
  });

  test("one that is turned away for its own appetite makes no claim", () => {
    const { budget } = setUp(100);
    const first = budget.reserve("a", 60);
    budget.reserve("b", 10);
    // 60 + 40 would be beyond the whole and beyond its half: no reason to hold b to its half.
    expect(() => budget.reserve("a", 40)).toThrow(refusal);
    first.release();
    budget.reserve("b", 80);
    expect(budget.usedBytes).toBe(90);
  });

  test("the largest body is admissible while others have theirs in flight", () => {
    const { budget } = setUp(LIMITS.ingestBodyBytes + 100);
    budget.reserve("b", 100);
    const large = budget.reserve("a", LIMITS.ingestBodyBytes);
    expect(budget.usedBytes).toBe(LIMITS.ingestBodyBytes + 100);
    large.release();
    const growing = budget.reserve("a", 1);
    growing.growTo(LIMITS.ingestBodyBytes);
    expect(() => budget.reserve("a", 1)).toThrow(refusal);
  });

  test("whatever is reserved, grown, settled and released by whom, it ends at nothing and never passes the bound", () => {
    const { budget, clock } = setUp(1_000);
    const held: Reservation[] = [];
    let state = 12_345;
    const next = (below: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return Math.floor(state / 65_536) % below;
    };
    const refusals: unknown[] = [];
    for (let i = 0; i < 20_000; i++) {
      clock.advance(next(100));
      try {
        const one = held[next(20)];
        const action = next(4);
        if (action < 2) held.push(budget.reserve(`db${next(3)}`, next(200)));
        else if (action === 2) one?.growTo(next(400));
        else if (one !== undefined) held.splice(held.indexOf(one), 1).forEach((reservation) => reservation.release());
      } catch (error) {
        refusals.push(error);
      }
      expect(budget.usedBytes).toBeLessThanOrEqual(1_000);
    }
    expect(refusals.length).toBeGreaterThan(1_000);
    expect(refusals).toEqual(refusals.map(() => refusal));
    for (const reservation of held) reservation.release();
    expect(budget.usedBytes).toBe(0);
  });
});

import { describe, expect, test } from "vitest";
import { ByteBudget, KeysUnderWay } from "./inflight.ts";

describe("ByteBudget", () => {
  test("refuses what does not fit, with Retry-After, and takes it once there is room", () => {
    const budget = new ByteBudget(100);
    const first = budget.reserve(80);
    expect(() => budget.reserve(30)).toThrow(
      expect.objectContaining({ code: "too_many_requests", details: { headers: { "Retry-After": "1" } } }),
    );
    first.resize(70);
    const second = budget.reserve(30);
    expect(budget.usedBytes).toBe(100);
    first.release();
    second.release();
    expect(budget.usedBytes).toBe(0);
  });

  test("a request that finds nothing in flight always fits", () => {
    expect(() => new ByteBudget(100).reserve(1000)).not.toThrow();
  });
});

describe("KeysUnderWay", () => {
  test("a second request waits for the first and takes its answer as a replay", async () => {
    const keys = new KeysUnderWay<{ n: number; replayed: boolean }>();
    const first = Promise.withResolvers<{ n: number; replayed: boolean }>();
    let runs = 0;
    const task = () => {
      runs++;
      return first.promise;
    };
    const asReplay = (value: { n: number }) => ({ ...value, replayed: true });
    const answers = [keys.run("k", task, asReplay), keys.run("k", task, asReplay), keys.run("k", task, asReplay)];
    first.resolve({ n: 1, replayed: false });
    expect(await Promise.all(answers)).toEqual([
      { n: 1, replayed: false },
      { n: 1, replayed: true },
      { n: 1, replayed: true },
    ]);
    expect(runs).toBe(1);
  });

  test("when the first fails the next tries for itself, one at a time", async () => {
    const keys = new KeysUnderWay<number>();
    let running = 0;
    let runs = 0;
    const task = async () => {
      runs++;
      expect(++running).toBe(1);
      await new Promise<void>((resolve) => setImmediate(resolve));
      running--;
      if (runs < 3) throw new Error(`attempt ${runs}`);
      return runs;
    };
    const answers = await Promise.allSettled(["a", "b", "c", "d"].map(() => keys.run("k", task, (n) => -n)));
    expect(answers.map((answer) => (answer.status === "fulfilled" ? answer.value : "failed"))).toEqual([
      "failed",
      "failed",
      3,
      -3,
    ]);
  });
});

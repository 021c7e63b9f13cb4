import { describe, expect, test } from "vitest";
import { KeysUnderWay } from "./keys-under-way.ts";

const asReplay = (value: { n: number }) => ({ ...value, replayed: true });

describe("KeysUnderWay", () => {
  test("a second request waits for the first and takes its answer as a replay", async () => {
    const keys = new KeysUnderWay<{ n: number; replayed: boolean }>();
    const first = Promise.withResolvers<{ n: number; replayed: boolean }>();
    let runs = 0;
    const task = () => {
      runs++;
      return first.promise;
    };
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

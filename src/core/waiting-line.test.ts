import { expect, test } from "vitest";
import { ManualClock } from "./clock.ts";
import { WaitingLine } from "./waiting-line.ts";

const patience = (signal = new AbortController().signal) => ({
  signal,
  timeoutMs: 1_000,
  onTimeout: () => new Error("too late"),
});

test("serves by key, sends away, and forgets who gave up", async () => {
  const clock = new ManualClock();
  const line = new WaitingLine<string, number>(clock);
  const left = new AbortController();
  const waiting = ["a", "b", "c", "d"].map((key) =>
    line.wait(key, patience(key === "c" ? left.signal : undefined)).catch((error: Error) => error.message),
  );
  expect([...line.keys()]).toEqual(["a", "b", "c", "d"]);
  line.serve("b", 2);
  line.refuse("a", new Error("full"));
  left.abort(new Error("left"));
  expect([...line.keys()]).toEqual(["d"]);
  clock.advance(1_000);
  expect(line.size).toBe(0);
  line.serve("d", 4);
  expect(await Promise.all(waiting)).toEqual(["full", 2, "left", "too late"]);
});

test("a client that has left already does not wait", async () => {
  const line = new WaitingLine<string, number>(new ManualClock());
  await expect(line.wait("a", patience(AbortSignal.abort(new Error("left"))))).rejects.toThrow("left");
  expect(line.size).toBe(0);
});

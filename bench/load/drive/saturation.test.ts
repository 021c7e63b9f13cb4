import { describe, expect, test } from "vitest";
import { quantile } from "../../../src/capacity/quantile.ts";
import { seededRandom } from "../../../src/core/random.ts";
import { poissonArrivals } from "../../support/arrivals.ts";
import { BOUNDS, brokenBound, findSaturation, type Measured } from "./saturation.ts";

const SECONDS = 60;

/** A queue before one server that takes exactly `capacity` requests a second, or on average that many. */
function queue(capacity: number, service: "even" | "exponential", seed: number) {
  let runs = 0;
  return (perSecond: number): Promise<Measured> => {
    const random = seededRandom(seed + runs++);
    const arrivals = poissonArrivals(perSecond, random);
    const latencies: number[] = [];
    let [freeAtMs, backlog, offered] = [0, 0, 0];
    for (let atMs = arrivals(); atMs < SECONDS * 1_000; atMs = arrivals()) {
      offered++;
      const share = service === "even" ? 1 : -Math.log(1 - random.next());
      const beginMs = Math.max(atMs, freeAtMs);
      freeAtMs = beginMs + (share * 1_000) / capacity;
      if (beginMs > SECONDS * 1_000) backlog++;
      latencies.push(freeAtMs - atMs);
    }
    const p99 = quantile(Float64Array.from(latencies).sort(), 0.99);
    return Promise.resolve({ offered, accepted: offered, refused: 0, failed: 0, backlog, latencyMs: { p99 } });
  };
}

describe("the saturation of a queue is found within 5 %", () => {
  test.each([
    ["even", 1_000, 10],
    ["even", 1_000, 900],
    ["even", 1_000, 7_000],
    ["exponential", 1_000, 50],
    ["exponential", 173, 50],
  ] as const)("%s service of %d/s, from %d/s", async (service, capacity, startPerSecond) => {
    const { perSecond, trials, run } = await findSaturation({
      run: queue(capacity, service, 9),
      bounds: BOUNDS,
      startPerSecond,
    });
    expect(perSecond).toBeGreaterThan(capacity * 0.95);
    expect(perSecond).toBeLessThan(capacity * 1.05);
    expect(trials.at(-1)).toEqual({ perSecond, broken: undefined });
    expect(brokenBound(run, BOUNDS)).toBeUndefined();
    expect(trials.length).toBeLessThan(25);
  });
});

const good: Measured = { offered: 1_000, accepted: 1_000, refused: 0, failed: 0, backlog: 0, latencyMs: { p99: 1 } };

test("what fails its confirmation is tried lower, and only a confirmed rate is told", async () => {
  const confirmed: number[] = [];
  const { perSecond } = await findSaturation({
    run: (rate, purpose) => {
      if (purpose === "confirms") confirmed.push(rate);
      const capacity = purpose === "confirms" ? 900 : 1_000;
      return Promise.resolve({ ...good, latencyMs: { p99: rate > capacity ? 5_000 : 1 } });
    },
    bounds: BOUNDS,
    startPerSecond: 100,
  });
  expect(perSecond).toBeLessThanOrEqual(900);
  expect(perSecond).toBeGreaterThan(860);
  expect(confirmed.length).toBeGreaterThan(2);
  expect(confirmed.at(-1)).toBe(perSecond);
});

test.each([
  [{ latencyMs: { p99: 1_001 } }, "the p99 was 1001 ms"],
  [{ refused: 1, failed: 1 }, "2 of 1000 requests failed or were refused"],
  [{ backlog: 11 }, "11 of 1000 requests were waiting"],
  [{ offered: 0, accepted: 0, latencyMs: { p99: Number.NaN } }, "no request was accepted"],
])("a run with %j breaks a bound", (broken, why) => {
  expect(brokenBound({ ...good, ...broken }, BOUNDS)).toBe(why);
});

test("a server that holds nothing, and one that holds everything, are told as such", async () => {
  const answering = (p99: number) => () => Promise.resolve({ ...good, latencyMs: { p99 } });
  const rest = { bounds: BOUNDS, startPerSecond: 100 };
  await expect(findSaturation({ run: answering(2_000), ...rest })).rejects.toThrow(
    "no rate holds: at 0.0244 requests/s the p99 was 2000 ms; widen the bounds",
  );
  await expect(findSaturation({ run: answering(1), ...rest })).rejects.toThrow(
    /every rate up to \d+ requests\/s holds/,
  );
});

test("a search that is aborted tries nothing more", async () => {
  const stop = new AbortController();
  let runs = 0;
  const search = findSaturation({
    run: () => {
      if (++runs === 3) stop.abort(new Error("stopped"));
      return Promise.resolve(good);
    },
    bounds: BOUNDS,
    startPerSecond: 1,
    signal: stop.signal,
  });
  await expect(search).rejects.toThrow("stopped");
  expect(runs).toBe(3);
});

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Backoff, backoffMs, fullBackoffMs } from "./backoff.ts";
import { seededRandom, type Random } from "./random.ts";

const growths = fc.record({ firstMs: fc.nat(100_000), mostMs: fc.nat(10_000_000) });
const failures = fc.nat(5_000);
const shares = fc.double({ min: 0, max: 1, noNaN: true });
const always = (value: number): Random => ({ next: () => value, fill: (target) => target });

describe("without jitter", () => {
  test("a wait is the base, twice as long after each failure, and never longer than the cap", () => {
    expect([0, 1, 2, 3, 4].map((n) => fullBackoffMs({ firstMs: 200, mostMs: 1_000 }, n))).toEqual([
      200, 400, 800, 1_000, 1_000,
    ]);
    fc.assert(
      fc.property(growths, failures, (growth, n) => {
        const [now, next] = [fullBackoffMs(growth, n), fullBackoffMs(growth, n + 1)];
        expect(now).toBeGreaterThanOrEqual(0);
        expect(next).toBe(Math.min(growth.mostMs, n < 1_000 ? 2 * now : now));
      }),
    );
  });

  test("a base of zero never waits", () => {
    expect([0, 1, 5_000].map((n) => fullBackoffMs({ firstMs: 0, mostMs: 1_000 }, n))).toEqual([0, 0, 0]);
  });
});

describe("with jitter", () => {
  test("a wait is between what is not random and the full wait, and reaches both ends", () => {
    fc.assert(
      fc.property(growths, failures, shares, fc.integer(), (growth, n, share, seed) => {
        const full = fullBackoffMs(growth, n);
        const wait = backoffMs(growth, n, seededRandom(seed), share);
        expect(wait).toBeGreaterThanOrEqual(full * (1 - share));
        expect(wait).toBeLessThanOrEqual(full);
        expect(backoffMs(growth, n, always(0), share)).toBe(full * (1 - share));
        expect(backoffMs(growth, n, always(1), share)).toBeCloseTo(full, 3);
      }),
    );
  });

  test("half of a wait is random unless another share is asked for", () => {
    const growth = { firstMs: 1_000, mostMs: 8_000 };
    expect(backoffMs(growth, 2, always(0))).toBe(2_000);
    expect(backoffMs(growth, 2, always(0.5))).toBe(3_000);
    expect(backoffMs(growth, 2, always(0.5), 1)).toBe(2_000);
    expect(backoffMs(growth, 2, always(0.5), 0.25)).toBe(3_500);
  });
});

test("failures in a row are counted until a success", () => {
  const backoff = new Backoff({ random: always(0), firstMs: 100, mostMs: 300 });
  expect([backoff.next(), backoff.next(), backoff.next(), backoff.next()]).toEqual([50, 100, 150, 150]);
  backoff.reset();
  expect(backoff.next()).toBe(50);
});

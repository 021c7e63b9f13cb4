import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fit, valueOf } from "./fit.ts";

const coefficient = fc.double({ min: 0.001, max: 1_000, noNaN: true });
const counts = fc.record({ requests: fc.integer({ min: 1, max: 1e5 }), bytes: fc.integer({ min: 1, max: 1e9 }) });

describe("fit", () => {
  it("predicts what exact observations of any coefficients say", () => {
    fc.assert(
      fc.property(coefficient, coefficient, fc.array(counts, { minLength: 4, maxLength: 12 }), (a, b, seen) => {
        const points = seen.map((terms) => ({ terms, value: a * terms.requests + b * terms.bytes }));
        const { coefficients } = fit(points, ["requests", "bytes"]);
        for (const { terms, value } of points) expect(valueOf(coefficients, terms) / value).toBeCloseTo(1, 2);
      }),
    );
  });

  it("gives nothing less than nothing", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(counts, coefficient), { minLength: 1, maxLength: 12 }), (seen) => {
        const points = seen.map(([terms, value]) => ({ terms, value }));
        for (const each of Object.values(fit(points, ["requests", "bytes"]).coefficients))
          expect(each).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it("says how far off it is once in ten", () => {
    const points = Array.from({ length: 20 }, (_, i) => ({ terms: { one: 1 }, value: i < 18 ? 1 : 2 }));
    const { errorP90 } = fit(points, ["one"]);
    expect(errorP90).toBeGreaterThanOrEqual(0.05);
    expect(errorP90).toBeLessThan(0.2);
  });

  it("has nothing to say of nothing", () => {
    expect(() => fit([{ terms: { one: 1 }, value: 0 }], ["one"])).toThrow("nothing was measured");
  });
});

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lostOf, sizeOf, type Loss, type RoleNeed } from "./sizing.ts";

const need = fc.record({
  role: fc.constant("ingest" as const),
  cores: fc.double({ min: 0, max: 100, noNaN: true }),
  main: fc.double({ min: 0, max: 20, noNaN: true }),
  isLed: fc.boolean(),
  leastNodes: fc.integer({ min: 2, max: 4 }),
  leastCores: fc.integer({ min: 1, max: 4 }),
}) satisfies fc.Arbitrary<RoleNeed>;
const loss = fc.record({
  survive: fc.constantFrom("nothing" as const, "node" as const, "zone" as const),
  zones: fc.integer({ min: 2, max: 4 }),
  maxUtilization: fc.double({ min: 0.1, max: 1, noNaN: true }),
  maxCores: fc.constantFrom(4, 16, 64),
}) satisfies fc.Arbitrary<Loss>;

describe("the size of a role", () => {
  it("keeps every bound, with all nodes and after the loss", () => {
    fc.assert(
      fc.property(need, loss, (needed, bounds) => {
        const size = sizeOf(needed, bounds);
        if (size === undefined) return;
        const working = needed.isLed ? 1 : size.nodes;
        const left = needed.isLed ? 1 : size.nodes - lostOf(size.nodes, bounds);
        expect(size.nodes).toBeGreaterThanOrEqual(needed.leastNodes);
        expect(size.cores).toBeLessThanOrEqual(bounds.maxCores);
        expect(needed.cores / (working * size.cores)).toBeLessThanOrEqual(bounds.maxUtilization);
        expect(needed.cores / (left * size.cores)).toBeLessThanOrEqual(0.9);
        expect(needed.main / left).toBeLessThanOrEqual(0.85);
      }),
    );
  });

  it("is never smaller for more", () => {
    fc.assert(
      fc.property(need, loss, fc.double({ min: 1, max: 3, noNaN: true }), (needed, bounds, more) => {
        const size = sizeOf(needed, bounds);
        const larger = sizeOf({ ...needed, cores: needed.cores * more, main: needed.main * more }, bounds);
        if (larger === undefined) return;
        expect(size).toBeDefined();
        expect(larger.nodes * larger.cores).toBeGreaterThanOrEqual((size?.nodes ?? 0) * (size?.cores ?? 0));
      }),
    );
  });

  it("is none where one node must do more than it has cores for", () => {
    const bounds: Loss = { survive: "node", zones: 1, maxUtilization: 0.7, maxCores: 4 };
    const led: RoleNeed = { role: "compaction", cores: 3, main: 0, isLed: true, leastNodes: 2, leastCores: 1 };
    expect(sizeOf(led, bounds)).toBeUndefined();
    expect(sizeOf({ ...led, cores: 2.5 }, bounds)).toMatchObject({ nodes: 2, cores: 4 });
  });

  it("loses a third of nodes in three zones, rounded to the worse side", () => {
    expect([3, 4, 6].map((nodes) => lostOf(nodes, { survive: "zone", zones: 3 }))).toEqual([1, 2, 2]);
    expect(lostOf(5, { survive: "nothing", zones: 3 })).toBe(0);
  });
});

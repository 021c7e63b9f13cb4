import { expect, test } from "vitest";
import { queryCapacity } from "./capacity.ts";

const GIB = 2 ** 30;
const MIB = 2 ** 20;

test.each([
  // [workers, budget, default, available] → [budget, processes, lowered]
  [2, 4 * GIB, true, 64 * GIB, 4 * GIB, 8, false],
  [2, 4 * GIB, true, 24 * GIB, 4 * GIB, 3, false],
  [2, 4 * GIB, true, 4 * GIB, 1.2 * GIB, 2, true],
  [2, 4 * GIB, true, 512 * MIB, 0.15 * GIB, 2, true],
  [8, 4 * GIB, true, 24 * GIB, 1.8 * GIB, 8, true],
  [2, GIB, false, 24 * GIB, GIB, 8, false],
  [2, 8 * GIB, false, 16 * GIB, 8 * GIB, 2, false],
  [2, 32 * GIB, false, 16 * GIB, 9.6 * GIB, 2, true],
  [1, 4 * GIB, true, 1, MIB, 1, true],
])(
  "%i workers of %i bytes (default: %s) in %i",
  (workers, memoryBytes, isDefault, availableBytes, budget, processes, lowered) => {
    const capacity = queryCapacity({ workers, memoryBytes, isDefault, availableBytes });
    expect(capacity).toMatchObject({ memoryBytes: Math.floor(budget), processes, lowered });
    const fits = capacity.memoryBytes * workers <= Math.max(capacity.totalMemoryBytes, workers * MIB);
    expect(fits || !isDefault).toBe(true);
  },
);

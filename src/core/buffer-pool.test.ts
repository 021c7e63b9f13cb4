import { describe, expect, test, vi } from "vitest";
import {
  copyBytes,
  isPageAligned,
  MIN_SHARED_BYTES,
  releaseShared,
  takePageAligned,
  takeShared,
} from "./buffer-pool.ts";

const view = (buffer: SharedArrayBuffer) => new Uint8Array(buffer);

describe("the pool of shared buffers", () => {
  test("gives a buffer again once it is back, and never to two at a time", () => {
    const first = takeShared(1_000_000);
    const second = takeShared(1_000_000);
    expect(second).not.toBe(first);
    releaseShared(view(first));
    expect(takeShared(1_000_001)).toBe(first);
    expect(takeShared(1_000_000)).not.toBe(first);
  });

  test.each([1, MIN_SHARED_BYTES, 100_000, 1_048_576, 1_048_577, 16 * 1024 * 1024])(
    "%d bytes have slack behind them",
    (size) => {
      const { byteLength } = takeShared(size);
      expect(byteLength).toBeGreaterThanOrEqual(size + 16);
      expect(byteLength).toBeLessThanOrEqual(Math.max(2 * MIN_SHARED_BYTES, (size + 16) * 1.25 + 1));
    },
  );

  test("has two kinds, and knows which start on a page", () => {
    const aligned = takePageAligned(500_000);
    const other = takeShared(500_000);
    expect(isPageAligned(view(aligned).subarray(0, 7))).toBe(true);
    expect(isPageAligned(view(aligned).subarray(1))).toBe(false);
    expect(isPageAligned(view(other))).toBe(false);
    for (const buffer of [other, aligned]) releaseShared(view(buffer));
    expect(takePageAligned(500_000)).toBe(aligned);
    expect(takeShared(500_000)).toBe(other);
  });

  test("copies bytes to where they belong and nowhere else", () => {
    const target = view(takeShared(100_000)).fill(9);
    const source = Uint8Array.from({ length: 1_000 }, (_, i) => i % 251);
    copyBytes(source.subarray(3, 990), target, 77);
    copyBytes(new Uint8Array(0), target, 0);
    expect(target.subarray(77, 77 + 987)).toEqual(source.subarray(3, 990));
    expect([target[76], target[77 + 987]]).toEqual([9, 9]);
    expect(() => copyBytes(source, target.subarray(0, 1_010), 11)).toThrow(RangeError);
  });

  test("refuses what is given back twice, or by another identity of the same memory", () => {
    const buffer = takeShared(200_000);
    expect(() => releaseShared(view(structuredClone(buffer)))).toThrow("nobody has");
    releaseShared(view(buffer));
    expect(() => releaseShared(view(buffer))).toThrow("nobody has");
  });

  test("leaves buffers alone that are not shared, and lets very large ones go", () => {
    releaseShared(new Uint8Array(10));
    const large = takeShared(100 * 1024 * 1024);
    releaseShared(view(large));
    expect(takeShared(100 * 1024 * 1024)).not.toBe(large);
  });

  test("lets go what nobody has taken for a while", async () => {
    vi.useFakeTimers();
    vi.resetModules();
    const fresh = await import("./buffer-pool.ts");
    const buffer = fresh.takeShared(300_000);
    fresh.releaseShared(view(buffer));
    vi.advanceTimersByTime(15_000);
    expect(fresh.takeShared(300_000)).toBe(buffer);
    fresh.releaseShared(view(buffer));
    vi.advanceTimersByTime(60_000);
    expect(fresh.takeShared(300_000)).not.toBe(buffer);
    vi.useRealTimers();
  });
});

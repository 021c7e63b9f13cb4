import type { Texts } from "./value-filter.ts";

/** Texts as a column builder holds them, for tests and benchmarks. */
export function textsOf(values: readonly (string | Uint8Array)[]): Texts {
  const parts = values.map((value) => Buffer.from(value));
  const offsets = new Int32Array(values.length + 1);
  parts.forEach((part, i) => {
    offsets[i + 1] = (offsets[i] ?? 0) + part.length;
  });
  return { offsets, bytes: new Uint8Array(Buffer.concat(parts)) };
}

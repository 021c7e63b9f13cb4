/**
 * A curve of growth: one file, which says what grows, how it is made to, and what is measured at each size. Order,
 * statistics, the fitted power, the verdict and the output are written once (`run.ts`).
 */
export type Curve = {
  /** As on the command line: what grows. */
  name: string;
  question: string;
  /** What grows, and how far: ascending. `few` is as much as shows that it works. */
  x: { unit: string; sizes: readonly number[]; few: readonly number[] };
  /** By name. */
  series: Readonly<Record<string, Series>>;
  /** Why it cannot be measured here, in a sentence; undefined where it can. */
  lacks?: () => Promise<string | undefined>;
  /** `close` is called in any case once it has resolved. */
  open: (context: CurveContext) => Promise<OpenCurve>;
};

export type Series = {
  unit: string;
  doc: string;
  promise: GrowthPromise;
  /** Why it grows by more than it may, and what that means to whoever has so much of it; where it does. */
  because?: string;
};

/** How much a figure may grow: not at all, or as n log n does, where each of them has to be looked at. */
export const GROWTH_PROMISES = ["flat", "n log n"] as const;
export type GrowthPromise = (typeof GROWTH_PROMISES)[number];

export type CurveContext = {
  /** An empty folder, or none yet, which is removed at the end. */
  folder: string;
  seed: number;
  /** Whether a figure may be of few values. */
  brief: boolean;
  signal: AbortSignal;
};

export type OpenCurve = {
  /** Values of every series at a size, several of each. Called once for each size, from the smallest to the largest. */
  at: (size: number) => Promise<Readonly<Record<string, readonly number[]>>>;
  close?: () => Promise<void>;
};

/** A curve as its file exports it. Throws where its parts do not fit together. */
export function defineCurve(curve: Curve): Curve {
  const { name, x } = curve;
  if (!/^[a-z][a-z-]*$/.test(name)) throw new Error(`${name} is no name of a curve`);
  for (const sizes of [x.sizes, x.few]) {
    if (sizes.length < 2 || sizes.some((size, i) => size <= (sizes[i - 1] ?? 0)))
      throw new Error(`${name}: sizes must be at least two, positive and ascending`);
  }
  return curve;
}

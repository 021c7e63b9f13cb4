import type { Result, Summary } from "../suite/result.ts";

/** Results that are made up. */
export function resultOf(more: Partial<Result> = {}): Result {
  return {
    schema: 2,
    benchmark: "made/up",
    question: "What?",
    notMeasured: "All else.",
    options: {},
    seed: 1,
    startedAt: "2026-11-28T12:00:00.000Z",
    commit: "0123456789abcdef",
    isClean: true,
    release: "3.0.0",
    machine: {
      processor: "one that is made up",
      cores: 2,
      cpuQuota: null,
      memoryBytes: 8 * 1024 ** 3,
      kernel: "6.1",
      node: "v22.19.0",
      fileSystem: "ef53",
      fsyncMs: { p50: 0.5, p99: 2 },
      sequentialWriteMiBPerSecond: 400,
      memoryCopyMiBPerSecond: 8_000,
      singleCoreMops: 500,
    },
    rounds: [],
    summary: [],
    marks: [],
    noise: { byMeasure: {}, foreignShare: 0, clockStepMs: 0, problems: [] },
    ...more,
  };
}

/** Of the measure `seal`, of which more is better; a ratio has an interval of a tenth around it. */
export function summaryOf(side: string, median: number, ratio: number | null, more: Partial<Summary> = {}): Summary {
  const around = (value: number) => ({ low: value * 0.9, high: value * 1.1 });
  return {
    side,
    measure: "seal",
    unit: "MB/s",
    better: "more",
    median,
    interval: around(median),
    ratio: ratio === null ? null : { median: ratio, interval: around(ratio) },
    ...more,
  };
}

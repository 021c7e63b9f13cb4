import { z } from "zod";
import { machineSchema } from "../../src/capacity/machine.ts";
import type { HeldOut } from "../report/report.ts";

/** What the plan says of a case, before it is run. */
const prediction = z.object({
  /** Busy cores by role, at the rate of the case. */
  cores: z.record(z.string(), z.number()),
  /** Requests a second that the first bottleneck lets through, and its name. */
  saturation: z.object({ perSecond: z.number(), name: z.string() }),
  /** At the rate of the case; null where the plan says that it cannot be held. */
  p99Ms: z.number().nullable(),
  /** Of one raw byte, before any merge. */
  storedPerRawByte: z.number(),
  /** Of the object store; null in one process. */
  putsPerSecond: z.number().nullable(),
});

const measured = z.object({
  cores: z.record(z.string(), z.number()),
  saturationPerSecond: z.number(),
  p99Ms: z.number(),
  storedPerRawByte: z.number(),
  putsPerSecond: z.number().nullable(),
  /** Generators, as a share of the machine. */
  generatorShare: z.number(),
  marks: z.array(z.string()),
});
export type Prediction = z.output<typeof prediction>;
export type Measured = z.output<typeof measured>;

/** A plan that was written first, and what came of it. */
export const proofSchema = z.object({
  schema: z.literal(1),
  kind: z.literal("proof"),
  startedAt: z.iso.datetime(),
  commit: z.string().nullable(),
  machine: machineSchema,
  /** SHA-256 of the file of costs, and of the predictions as JSON, written before the first run. */
  costsSha256: z.string(),
  predictionsSha256: z.string(),
  seconds: z.number(),
  cases: z.array(z.object({ name: z.string(), mode: z.string(), predicted: prediction, measured })),
});
export type Proof = z.output<typeof proofSchema>;

/** Below this share of a core CPU is not compared: it is what a process does without a load. */
const LEAST_CORES = 0.03;
/** What is asked of a plan, as shares of what was predicted. */
const WANTED = { cores: 0.2, saturation: 0.2, stored: 0.1 };

/** Every figure of every case with the range that is wanted; for waits and requests that of CPU. */
export function comparedIn({ cases }: Pick<Proof, "cases">): HeldOut[] {
  return cases.flatMap(({ name: load, predicted, measured: seen }) => {
    const row = (measure: string, unit: string, value: number, found: number, share: number): HeldOut => {
      const range = { value, low: value * (1 - share), high: value * (1 + share) };
      return { load, measure, unit, predicted: range, measured: found };
    };
    const cores = Object.entries(predicted.cores).flatMap(([role, busy]) => {
      const found = seen.cores[role] ?? 0;
      if (Math.max(busy, found) < LEAST_CORES) return [];
      return [row(`CPU of ${role}`, "cores", busy, found, WANTED.cores)];
    });
    const rows = [
      ...cores,
      row("saturation", "/s", predicted.saturation.perSecond, seen.saturationPerSecond, WANTED.saturation),
      row("at rest", "per raw byte", predicted.storedPerRawByte, seen.storedPerRawByte, WANTED.stored),
    ];
    if (predicted.p99Ms !== null) rows.push(row("p99", "ms", predicted.p99Ms, seen.p99Ms, WANTED.cores));
    if (predicted.putsPerSecond !== null && seen.putsPerSecond !== null)
      rows.push(row("PUTs", "/s", predicted.putsPerSecond, seen.putsPerSecond, WANTED.cores));
    return rows;
  });
}

import { z } from "zod";
import { machineSchema } from "../../src/capacity/machine.ts";
import { GROWTH_PROMISES } from "../growth/curve.ts";
import { GROWTH_VERDICTS } from "../growth/fit.ts";

/** The file of a curve: how figures grow with a size. */
export const growthSchema = z.object({
  kind: z.literal("growth"),
  schema: z.literal(1),
  /** What grows. */
  name: z.string(),
  question: z.string(),
  x: z.object({ unit: z.string() }),
  series: z
    .array(
      z.object({
        name: z.string(),
        unit: z.string(),
        doc: z.string(),
        promise: z.enum(GROWTH_PROMISES),
        /** Why it grows by more; null where nothing is said. */
        because: z.string().nullable(),
        points: z
          .array(
            z.object({
              x: z.number().positive(),
              y: z.number().positive(),
              /** Of 95 %. */
              interval: z.object({ low: z.number().positive(), high: z.number().positive() }),
            }),
          )
          .min(2),
        /** `b` of y = a · x^b, fitted to the points. */
        exponent: z.number(),
        verdict: z.enum(GROWTH_VERDICTS),
      }),
    )
    .min(1),
  /** What made the machine too noisy, in sentences. */
  problems: z.array(z.string()),
  startedAt: z.iso.datetime(),
  /** Null where there is no repository. */
  commit: z.string().nullable(),
  machine: machineSchema,
});
export type Growth = z.output<typeof growthSchema>;

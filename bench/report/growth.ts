import { z } from "zod";
import { machineSchema } from "../../src/capacity/machine.ts";

/** The file of a curve: how a measure grows with a size, for one or more sides. */
export const growthSchema = z.object({
  kind: z.literal("growth"),
  schema: z.literal(1),
  /** What grows; as a benchmark is named. */
  name: z.string(),
  question: z.string(),
  x: z.object({ name: z.string(), unit: z.string() }),
  y: z.object({ name: z.string(), unit: z.string() }),
  series: z
    .array(
      z.object({
        name: z.string(),
        points: z
          .array(
            z.object({
              x: z.number().positive(),
              y: z.number().positive(),
              /** Of 95 %. */
              interval: z.object({ low: z.number().positive(), high: z.number().positive() }).nullable(),
            }),
          )
          .min(1),
        /** `b` of y = a · x^b, fitted to the points; null where it was not. */
        exponent: z.number().nullable(),
      }),
    )
    .min(1),
  startedAt: z.iso.datetime(),
  /** Null where there is no repository. */
  commit: z.string().nullable(),
  machine: machineSchema,
});
export type Growth = z.output<typeof growthSchema>;

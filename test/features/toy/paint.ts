import { z } from "zod";
import { valuesOf } from "../../../src/config/option.ts";
import type { JobHandler } from "../../../src/fabric/handler.ts";
import type { JobKind } from "../../../src/fabric/kinds.ts";
import type { FeatureDeps } from "../../../src/feature/feature.ts";
import { TOY_METRICS } from "./metrics.ts";
import { TOY_OPTIONS } from "./options.ts";

const payload = z.strictObject({ toy: z.string() });

export const PAINT: JobKind = { name: "toy.paint", payload, enqueue: "nobody", claim: "engine" };

export function createPaint({ config, metrics, records }: FeatureDeps): JobHandler {
  const { toyColour } = valuesOf(TOY_OPTIONS, config);
  const { toysPainted } = TOY_METRICS.of(metrics);
  return {
    kind: PAINT.name,
    run: async (job) => {
      const { toy } = payload.parse(job.payload);
      await records.write({ sql: "UPDATE toys SET colour = ? WHERE id = ?", values: [toyColour, toy] });
      toysPainted.inc();
      return { colour: toyColour };
    },
  };
}

import { valuesOf } from "../../../src/config/option.ts";
import type { FeatureDeps, FeatureDuty } from "../../../src/feature/feature.ts";
import { TOY_OPTIONS } from "./options.ts";

/** Broken toys are those whose name says so. */
export function tidyDuty({ config, records }: FeatureDeps): FeatureDuty {
  return {
    name: "toy tidy",
    pollMs: valuesOf(TOY_OPTIONS, config).toyTidyMs,
    duty: async () => {
      await records.write({ sql: "DELETE FROM toys WHERE name LIKE 'broken %'", values: [] });
    },
  };
}

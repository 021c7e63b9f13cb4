import type { FeatureParts } from "../feature/feature.ts";

/** What a machine spends, and how many of them carry a workload. */
export const CAPACITY: FeatureParts = {
  name: "capacity",
  title: "Capacity",
  commands: {
    plan: () => import("./commands/plan.ts"),
  },
};

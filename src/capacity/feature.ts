import type { FeatureParts } from "../feature/feature.ts";

/** What a machine spends, and how many of them carry a workload. */
export const CAPACITY: FeatureParts = {
  name: "capacity",
  title: "Capacity",
  commands: {
    bench: () => import("./commands/bench.ts"),
    plan: () => import("./commands/plan.ts"),
  },
};

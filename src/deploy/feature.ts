import type { FeatureParts } from "../feature/feature.ts";

/** From the installed program to a running deployment: `engine deploy`. */
export const DEPLOY: FeatureParts = {
  name: "deploy",
  title: "Deployment",
  commands: { deploy: () => import("./commands/deploy.ts") },
};

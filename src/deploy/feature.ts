import type { FeatureParts } from "../feature/feature.ts";

/** From the installed program to a running deployment: `engine deploy`. */
export const DEPLOY: FeatureParts = {
  name: "deploy",
  title: "Deployment",
  options: async () => (await import("./idp/options.ts")).IDP_OPTIONS,
  commands: { deploy: () => import("./commands/deploy.ts") },
};

import type { FeatureParts } from "../feature/feature.ts";

/** How the program lives on a machine: as a service of its user, and from one version to the next. */
export const INSTALL: FeatureParts = {
  name: "install",
  title: "Installation",
  options: async () => (await import("./update/options.ts")).UPDATE_OPTIONS,
  commands: {
    service: () => import("./commands/service.ts"),
    update: () => import("./commands/update.ts"),
    "self-test": () => import("./commands/self-test.ts"),
  },
};

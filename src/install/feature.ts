import type { FeatureParts } from "../feature/feature.ts";

/** How the program lives on a machine: as a service of the user. */
export const INSTALL: FeatureParts = {
  name: "install",
  title: "Installation",
  commands: {
    service: () => import("./commands/service.ts"),
  },
};

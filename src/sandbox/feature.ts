import type { Feature } from "../feature/feature.ts";
import type { SandboxDeps } from "./control/routes/deps.ts";

/** A node that builds an image and is silent for so long has lost it. */
const IMAGE_LEASE_MS = 60_000;

/** Sandboxes, their sessions, workspaces and images. */
export const SANDBOX: Feature<{ sandboxes: SandboxDeps }> = {
  name: "sandbox",
  title: "Sandboxes",
  options: async () => (await import("./contract/options.ts")).SANDBOX_OPTIONS,
  metrics: async () => (await import("./contract/metrics.ts")).SANDBOX_METRICS,
  migrations: async () => (await import("./control/tables.ts")).SANDBOX_MIGRATIONS,
  capabilities: async () => (await import("./control/capabilities.ts")).SANDBOX_CAPABILITIES,
  commands: {
    sandbox: () => import("./commands/sandbox.ts"),
    workspace: () => import("./commands/workspace.ts"),
    image: () => import("./commands/image.ts"),
  },
  routes: async () => {
    const { SANDBOX_ROUTES } = await import("./control/routes/sandbox-routes.ts");
    return [{ name: "sandboxes", answeredBy: "sandboxes", routes: SANDBOX_ROUTES }];
  },
  jobKinds: async (config) => {
    const [{ sandboxConfig }, { sandboxJobKind }, { imageBuildJobKind }] = await Promise.all([
      import("./contract/options.ts"),
      import("./contract/sandbox-job.ts"),
      import("./contract/images/build-job.ts"),
    ]);
    return [sandboxJobKind(sandboxConfig(config).sandboxLeaseSecs * 1_000), imageBuildJobKind(IMAGE_LEASE_MS)];
  },
};

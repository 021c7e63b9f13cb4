import type { DeployTarget } from "./target.ts";
import type { TargetName } from "./workspace.ts";

/** A target is loaded when a deployment names it. */
const LOADERS: Record<TargetName, () => Promise<DeployTarget>> = {
  cloud: async () => (await import("./cloud/cloud-target.ts")).CLOUD_TARGET,
  local: async () => (await import("./local/local-target.ts")).LOCAL_TARGET,
};

export async function targetOf(name: TargetName): Promise<DeployTarget> {
  return await LOADERS[name]();
}

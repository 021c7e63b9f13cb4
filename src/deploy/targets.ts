import { CliError, EXIT } from "../client/failure.ts";
import type { DeployTarget } from "./target.ts";
import type { TargetName } from "./workspace.ts";

/** A target is loaded when a deployment names it. */
const LOADERS: Partial<Record<TargetName, () => Promise<DeployTarget>>> = {
  local: async () => (await import("./local/local-target.ts")).LOCAL_TARGET,
};

/** @throws CliError for a target that this version does not have */
export async function targetOf(name: TargetName): Promise<DeployTarget> {
  const load = LOADERS[name];
  if (load !== undefined) return await load();
  const known = Object.keys(LOADERS).join(", ");
  throw new CliError(`this version cannot deploy to the target ${name}; give --target: ${known}`, EXIT.usage);
}

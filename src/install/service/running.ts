import { existsSync } from "node:fs";
import type { Address } from "../../config/kinds.ts";
import type { ServiceManager } from "./definition.ts";
import { installedService } from "./service.ts";

export type RunningService = { manager: ServiceManager; listen: Address };

/** The service, where it runs the program that this command starts. */
export async function serviceRunning(
  manager: ServiceManager,
  command: readonly string[],
): Promise<RunningService | undefined> {
  // Without the file nobody is asked, who may not be there either.
  if (!existsSync(manager.file)) return undefined;
  const known = await installedService(manager);
  if (known === undefined || known.command.join("\0") !== command.join("\0")) return undefined;
  const { isRunning } = await manager.state();
  return isRunning ? { manager, listen: known.listen } : undefined;
}

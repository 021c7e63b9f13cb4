import type { CliContext } from "../../../client/context.ts";
import { valuesOf } from "../../../config/option.ts";
import { agentHomeOf } from "../../filesync/open.ts";
import { FILE_SYNC_OPTIONS } from "../../filesync/options.ts";

/** Where the terminal coding agent of this user keeps its files. */
export async function agentHome(context: CliContext): Promise<string> {
  return agentHomeOf(valuesOf(FILE_SYNC_OPTIONS, (await context.loadConfig({})).config));
}

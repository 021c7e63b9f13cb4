import type { LoadedConfig } from "../config/load.ts";
import type { Target } from "./client.ts";
import type { CliContext } from "./context.ts";
import { DEFAULT_URL, savedTarget } from "./saved-target.ts";
import { renewedToken } from "./session.ts";

/**
 * Flag, variable or file, then the saved server, then the local one. The saved token goes only to the server that it
 * was saved for.
 * @throws CliError when the saved file is damaged and needed.
 */
export async function resolveTarget(context: CliContext, loaded: LoadedConfig): Promise<Target> {
  return (await chosenTarget(context, loaded)) ?? { url: DEFAULT_URL, origin: "default" };
}

/**
 * The server that somebody chose, by flag, variable, file or `engine connect`; undefined where nobody did. A token by
 * itself chooses the local server, for nothing else would take it.
 * @throws CliError when the saved file is damaged and needed.
 */
export async function chosenTarget(context: CliContext, loaded: LoadedConfig): Promise<Target | undefined> {
  const found = await savedTarget(loaded);
  if (found === undefined) return undefined;
  const { session, ...target } = found;
  const { url, token } = target;
  if (session === undefined || token === undefined) return target;
  return { ...target, freshToken: renewedToken(context, loaded.config.home, { url, token, session }) };
}

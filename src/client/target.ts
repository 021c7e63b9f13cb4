import type { LoadedConfig } from "../config/load.ts";
import type { Target } from "./client.ts";
import type { CliContext } from "./context.ts";
import { readSavedClient } from "./saved-client.ts";
import { renewedToken } from "./session.ts";

const DEFAULT_URL = "http://127.0.0.1:7777";

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
export async function chosenTarget(
  context: CliContext,
  { config, origins }: LoadedConfig,
): Promise<Target | undefined> {
  const needsSaved = config.serverUrl === undefined || config.token === undefined;
  const saved = needsSaved ? await readSavedClient(config.home) : undefined;
  if (config.serverUrl === undefined && config.token === undefined && saved === undefined) return undefined;
  const url = config.serverUrl ?? saved?.url ?? DEFAULT_URL;
  const origin =
    config.serverUrl !== undefined ? origins.serverUrl : saved === undefined ? "default" : "engine connect";
  if (config.token !== undefined) return { url, origin, token: config.token };
  if (saved?.token === undefined || saved.url !== url) return { url, origin };
  const { token, session } = saved;
  if (session === undefined) return { url, origin, token };
  return { url, origin, token, freshToken: renewedToken(context, config.home, { url, token, session }) };
}

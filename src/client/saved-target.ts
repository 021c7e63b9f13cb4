import type { LoadedConfig } from "../config/load.ts";
import type { Target } from "./client.ts";
import { readSavedClient, type SavedSession } from "./saved-client.ts";

export const DEFAULT_URL = "http://127.0.0.1:7777";

/** The server that somebody chose (`chosenTarget`), with its token as it was saved, whether or not that has ended. */
export async function savedTarget({
  config,
  origins,
}: Pick<LoadedConfig, "config" | "origins">): Promise<(Target & { session?: SavedSession }) | undefined> {
  const needsSaved = config.serverUrl === undefined || config.token === undefined;
  const saved = needsSaved ? await readSavedClient(config.home) : undefined;
  if (config.serverUrl === undefined && config.token === undefined && saved === undefined) return undefined;
  const url = config.serverUrl ?? saved?.url ?? DEFAULT_URL;
  const origin =
    config.serverUrl !== undefined ? origins.serverUrl : saved === undefined ? "default" : "engine connect";
  if (config.token !== undefined) return { url, origin, token: config.token };
  if (saved?.token === undefined || saved.url !== url) return { url, origin };
  return { url, origin, token: saved.token, ...(saved.session !== undefined && { session: saved.session }) };
}

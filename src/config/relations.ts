import { unknownRoles } from "./kinds.ts";
import { OBJECT_STORE_OPTIONS, objectStoreOptionSet } from "./object-store.ts";
import { optionOf, type Config, type OptionName } from "./options.ts";

/** Apps that have options of their own. */
const DATA_SOURCE_APPS = [
  { name: "google", id: "oauthGoogleClientId" },
  { name: "notion", id: "oauthNotionClientId" },
  { name: "atlassian", id: "oauthAtlassianClientId" },
  { name: "slack", id: "oauthSlackClientId" },
] as const;

type Loaded = { config: Config; origins: Readonly<Record<OptionName, string>> };

/** The first relation between options that does not hold, as a sentence; undefined when all hold. */
export function relationProblem({ config, origins }: Loaded): string | undefined {
  const named = (name: OptionName) => {
    const { env, kind } = optionOf(name);
    return `${env ?? name} (${kind.format(config[name])}, ${origins[name]})`;
  };
  if (config.flushMaxBytes > config.ingestMaxInflightBytes) {
    // A flush waits for bytes that admission would never let in.
    return `${named("flushMaxBytes")} must not pass ${named("ingestMaxInflightBytes")}`;
  }
  if (config.drainNoticeSecs !== undefined && config.drainNoticeSecs > config.drainTimeoutSecs) {
    return `${named("drainNoticeSecs")} must not pass ${named("drainTimeoutSecs")}`;
  }
  if (config.authBackend === "idp" && config.idpUrl === undefined) {
    return `${named("authBackend")} needs ${optionOf("idpUrl").env}`;
  }
  for (const { name, id } of DATA_SOURCE_APPS) {
    if (config[id] === undefined || !Object.hasOwn(config.oauthProviders, name)) continue;
    return `${origins[id]} and ${name} in ${origins.oauthProviders} both say which app it is: set one of them`;
  }
  if (config.localDb === config.localData) {
    return `${named("localDb")} is a file and ${named("localData")} a folder: they cannot be the same path`;
  }
  return undefined;
}

/** Settings that were made and have no effect, because another one takes their place or because they mean nothing. */
export function uselessSettings({ config, origins }: Loaded): string[] {
  const warnings: string[] = [];
  const unknown = unknownRoles(config.roles).map((name) => JSON.stringify(name));
  if (unknown.length > 0) {
    warnings.push(
      `${origins.roles} names no role of this version (${unknown.join(", ")}); this server runs everything`,
    );
  }
  const isSet = (name: OptionName) => !origins[name].startsWith("default");
  const replaced = (name: OptionName, by: OptionName, on = "") => {
    if (isSet(name) && isSet(by)) warnings.push(`${origins[name]} has no effect${on}, because ${origins[by]} is set`);
  };
  replaced("localDb", "catalogUrl");
  const remote = objectStoreOptionSet(origins);
  if (config.localMode) for (const name of OBJECT_STORE_OPTIONS) replaced(name, "localMode");
  else if (remote !== undefined) replaced("localData", remote);
  // Which of the two commands it is, nobody knows here.
  replaced("serverPort", "httpAddr", " on `engine server`");
  replaced("serverPort", "localHttpAddr", " on `engine serve`");
  return warnings;
}

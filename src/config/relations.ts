import { unknownRoles } from "./kinds.ts";
import { OBJECT_STORE_OPTIONS, objectStoreOptionSet } from "./object-store.ts";
import type { OptionRows } from "./option.ts";
import type { Config, OptionName, Origins } from "./options.ts";

type Loaded = { config: Config; origins: Origins };

/** The first relation between options that does not hold, as a sentence; undefined when all hold. */
export function relationProblem({ config, origins }: Loaded, table: OptionRows): string | undefined {
  const values: Readonly<Record<string, unknown>> = config;
  const originOf = (name: string) => origins[name] ?? "default";
  const shown = (name: string) => {
    const { env, kind } = table[name] ?? {};
    return `${env ?? name} (${kind?.format(values[name])}, ${originOf(name)})`;
  };
  for (const [name, option] of Object.entries(table)) {
    const value = values[name];
    const problem = value === undefined ? undefined : option.relation?.(value, { values, originOf, shown }, name);
    if (problem !== undefined) return problem;
  }
  if (config.localDb === config.localData) {
    return `${shown("localDb")} is a file and ${shown("localData")} a folder: they cannot be the same path`;
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

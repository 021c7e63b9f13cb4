import { HIDDEN } from "./kinds.ts";
import type { LoadedConfig } from "./load.ts";
import type { Option } from "./option.ts";
import { withRows } from "./options.ts";

/** One option as it is shown to people: never with a secret in it. */
export type DescribedOption = {
  name: string;
  env: string | null;
  toml: string | null;
  /** Numbers, bools and lists as they are, everything else as text; null when unset. */
  value: string | number | boolean | readonly string[] | null;
  /** Where the value came from. */
  origin: string;
};

/** The effective configuration, in the order of the table. */
export function describeConfig({
  config,
  origins,
  rows,
}: Pick<LoadedConfig, "config" | "origins" | "rows">): DescribedOption[] {
  const values: Readonly<Record<string, unknown>> = config;
  return Object.entries(withRows(rows)).map(([name, option]) => {
    const origin = origins[name] ?? "default";
    const value = shownValue(option, values[name], origin);
    return { name, env: option.env ?? null, toml: option.toml ?? null, value, origin };
  });
}

function shownValue(option: Option<unknown>, value: unknown, origin: string): DescribedOption["value"] {
  if (value === undefined) return null;
  if (typeof value === "number" || typeof value === "boolean") return value;
  if (Array.isArray(value) && option.secret !== true) return value as string[];
  const text = option.kind.format(value);
  const shown = option.kind.hide?.(text) ?? (option.secret === true ? HIDDEN : text);
  // A mask says that somebody has set a secret: a list without items has none, and a default is public.
  const isUnset = origin === "default" || text === "";
  return isUnset && option.secret === true && shown === HIDDEN ? null : shown;
}

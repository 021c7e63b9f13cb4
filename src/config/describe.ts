import { HIDDEN } from "./kinds.ts";
import type { LoadedConfig } from "./load.ts";
import type { Option } from "./option.ts";
import { OPTION_NAMES, optionOf, type OptionName } from "./options.ts";

/** One option as it is shown to people: never with a secret in it. */
export type DescribedOption = {
  name: OptionName;
  env: string | null;
  toml: string | null;
  /** Numbers, bools and lists as they are, everything else as text; null when unset. */
  value: string | number | boolean | readonly string[] | null;
  /** Where the value came from. */
  origin: string;
};

/** The effective configuration, in the order of the table. */
export function describeConfig({ config, origins }: Pick<LoadedConfig, "config" | "origins">): DescribedOption[] {
  return OPTION_NAMES.map((name) => {
    const option = optionOf(name);
    const value = shownValue(option, config[name]);
    return { name, env: option.env ?? null, toml: option.toml ?? null, value, origin: origins[name] };
  });
}

function shownValue(option: Option<unknown>, value: unknown): DescribedOption["value"] {
  if (value === undefined) return null;
  if (typeof value === "number" || typeof value === "boolean") return value;
  if (Array.isArray(value) && option.secret !== true) return value as string[];
  const text = option.kind.format(value);
  return option.kind.hide?.(text) ?? (option.secret === true ? HIDDEN : text);
}

import { valuesOf } from "../../../config/option.ts";
import { StartupError } from "../../../core/errors.ts";
import { FILEDROP_OPTIONS, namedPrefixes } from "./options.ts";

/**
 * Where files are dropped.
 * @throws StartupError (exit code 2) where one prefix holds another, or what the engine writes itself.
 */
export function dropPrefixes(config: { pathPrefix: string }): readonly string[] {
  const { prefixes, option } = namedPrefixes(valuesOf(FILEDROP_OPTIONS, config));
  const variable = FILEDROP_OPTIONS[option].env;
  const refuse = (problem: string): StartupError => new StartupError(`${variable} ${problem}`, 2);
  for (const [i, prefix] of prefixes.entries()) {
    if (overlap(prefix, config.pathPrefix)) {
      const own = `ENGINE_PATH_PREFIX (${config.pathPrefix}), where the engine keeps its own objects`;
      throw refuse(`has ${prefix}, which overlaps ${own}: choose another prefix for dropped files`);
    }
    const other = prefixes.slice(0, i).find((earlier) => overlap(prefix, earlier));
    if (other !== undefined) throw refuse(`has ${other} and ${prefix}, which overlap: a file would be under both`);
  }
  return prefixes;
}

/** Without regard to case, as some file systems have it. */
function overlap(one: string, other: string): boolean {
  const [a, b] = [`${one.toLowerCase()}/`, `${other.toLowerCase()}/`];
  return a.startsWith(b) || b.startsWith(a);
}

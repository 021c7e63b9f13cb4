import { bool, integer, keyPrefix, type Kind, type ReadContext } from "../../../config/kinds.ts";
import { option, optional } from "../../../config/option.ts";

const MAX_PREFIXES = 32;

/** As `keyPrefix`; a slash at its end, as other tools write it, is left out. */
const dropPrefix: Kind<string> = {
  ...keyPrefix,
  parse: (text, context) => keyPrefix.parse(text.replace(/\/$/, ""), context),
};

const dropPrefixes: Kind<readonly string[]> = {
  accepts: `1 to ${MAX_PREFIXES} prefixes separated by commas, each of ${keyPrefix.accepts}`,
  label: "list of key prefixes",
  parse: (text, context) => prefixesIn(text.split(","), context),
  parseNative: (value) =>
    Array.isArray(value) && value.every((item) => typeof item === "string")
      ? prefixesIn(value, { baseDir: "", userHome: "" })
      : undefined,
  format: (value) => value.join(","),
};

function prefixesIn(texts: readonly string[], context: ReadContext): readonly string[] | undefined {
  const prefixes = texts.map((text) => dropPrefix.parse(text.trim(), context));
  if (prefixes.length > MAX_PREFIXES || !prefixes.every((prefix) => prefix !== undefined)) return undefined;
  return prefixes;
}

const DEFAULT_PREFIX = "ingest";

export const FILEDROP_OPTIONS = {
  filedropEnabled: option({
    env: "ENGINE_FILEDROP_ENABLED",
    toml: "filedrop.enabled",
    kind: bool,
    default: false,
    side: "S",
    doc: "Whether files that are put into the object store under the prefixes are ingested (docs/filedrop.md).",
  }),
  filedropPrefixes: optional({
    env: "ENGINE_FILEDROP_PREFIXES",
    toml: "filedrop.prefixes",
    kind: dropPrefixes,
    whenUnset: DEFAULT_PREFIX,
    side: "S",
    doc: "Where files are dropped: prefixes of keys, from the root of the bucket or of `ENGINE_LOCAL_DATA`.",
  }),
  filedropPrefix: optional({
    env: "ENGINE_FILEDROP_PREFIX",
    toml: "filedrop.prefix",
    kind: dropPrefix,
    whenUnset: "`ENGINE_FILEDROP_PREFIXES` says",
    side: "S",
    doc: "A single prefix, as earlier versions had it; `ENGINE_FILEDROP_PREFIXES` wins.",
  }),
  filedropPollSecs: option({
    env: "ENGINE_FILEDROP_POLL_SECS",
    toml: "filedrop.poll_secs",
    kind: integer({ min: 1, max: 86_400 }),
    default: 5,
    side: "S",
    doc: "Seconds between two looks for files.",
  }),
  filedropDeleteAfterIngest: option({
    env: "ENGINE_FILEDROP_DELETE_AFTER_INGEST",
    toml: "filedrop.delete_after_ingest",
    kind: bool,
    default: false,
    side: "S",
    doc: "Whether files are deleted once their rows are committed, those from before included. Rejected ones stay.",
  }),
  filedropAutoCreate: option({
    env: "ENGINE_FILEDROP_AUTO_CREATE",
    toml: "filedrop.auto_create",
    kind: bool,
    default: true,
    side: "S",
    doc: "Whether missing databases and tables are created. Otherwise files wait for their table.",
  }),
  filedropSchemaEvolve: option({
    env: "ENGINE_FILEDROP_SCHEMA_EVOLVE",
    toml: "filedrop.schema_evolve",
    kind: bool,
    default: true,
    side: "S",
    doc: "Whether unknown fields become columns. Otherwise they are dropped.",
  }),
} as const;

/** The prefixes that the options name; `ENGINE_FILEDROP_PREFIXES` wins. */
export function namedPrefixes({
  filedropPrefixes,
  filedropPrefix,
}: {
  filedropPrefixes: readonly string[] | undefined;
  filedropPrefix: string | undefined;
}): { prefixes: readonly string[]; option: "filedropPrefixes" | "filedropPrefix" } {
  if (filedropPrefixes === undefined && filedropPrefix !== undefined) {
    return { prefixes: [filedropPrefix], option: "filedropPrefix" };
  }
  return { prefixes: filedropPrefixes ?? [DEFAULT_PREFIX], option: "filedropPrefixes" };
}

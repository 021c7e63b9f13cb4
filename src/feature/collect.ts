import type { OptionRows } from "../config/option.ts";
import type { Config } from "../config/options.ts";
import type { MetricSet } from "../core/metric-set.ts";
import type { Migration } from "../db/migration.ts";
import type { JobKind } from "../fabric/kinds.ts";
import type { CommandLoader } from "../client/command.ts";
import type { FeatureParts } from "./feature.ts";

/** What a list of features contributes together, in the order of the list. */
type Features = readonly FeatureParts[];

/** What `partOf` gives for each feature, one after the other; what that loads is loaded at once. */
export async function contributed<F, T>(
  features: readonly F[],
  partOf: (feature: F) => Promise<readonly T[]> | undefined,
): Promise<T[]> {
  const parts = await Promise.all(features.flatMap((feature) => partOf(feature) ?? []));
  return parts.flatMap((part) => part);
}

/** Throws for an option that two features have. */
export async function optionRowsOf(features: Features): Promise<OptionRows> {
  const loaded = await optionsOf(features);
  return joined(loaded, "option", ({ options }) => options);
}

/** The options of those features that have some. */
export async function optionsOf<F extends Pick<FeatureParts, "name" | "options">>(
  features: readonly F[],
): Promise<(Omit<F, "options"> & { options: OptionRows })[]> {
  return contributed(features, (feature) => feature.options?.().then((options) => [{ ...feature, options }]));
}

/** Throws for a command that two features have. */
export function commandsOf(features: Features): Readonly<Record<string, CommandLoader>> {
  return joined(features, "command", ({ commands }) => commands);
}

export function migrationsOf(features: Features): Promise<readonly Migration[]> {
  return contributed(features, ({ migrations }) => migrations?.());
}

/** Throws for a kind that two features have. */
export async function jobKindsOf(features: Features, config: Config): Promise<readonly JobKind[]> {
  const kinds = await contributed(features, ({ jobKinds }) => jobKinds?.(config));
  const names = new Set<string>();
  for (const name of kinds.flatMap((kind) => [kind.name, ...(kind.aliases ?? [])])) {
    if (names.has(name)) throw new Error(`two features have the kind of job ${name}`);
    names.add(name);
  }
  return kinds;
}

/** Has a process know the metrics of all features. */
export async function registerMetrics(features: Features, process: Parameters<MetricSet["of"]>[0]): Promise<void> {
  for (const { metrics } of await metricSetsOf(features)) metrics.of(process);
}

/** The metrics of those features that have some. */
export async function metricSetsOf<F extends FeatureParts>(
  features: readonly F[],
): Promise<{ feature: F; metrics: MetricSet }[]> {
  return contributed(features, (feature) => feature.metrics?.().then((metrics) => [{ feature, metrics }]));
}

function joined<T, F extends { name: string }>(
  features: readonly F[],
  what: string,
  partOf: (feature: F) => Readonly<Record<string, T>> | undefined,
): Readonly<Record<string, T>> {
  const owners = new Map<string, string>();
  const all: Record<string, T> = {};
  for (const feature of features) {
    for (const [name, value] of Object.entries(partOf(feature) ?? {})) {
      const owner = owners.get(name);
      if (owner !== undefined)
        throw new Error(`the features ${owner} and ${feature.name} both have the ${what} ${name}`);
      owners.set(name, feature.name);
      all[name] = value;
    }
  }
  return all;
}

import type { Registry } from "prom-client";

/** The metrics of one feature. Whoever has the process's metrics gets the feature's by it. */
export type MetricSet<M extends object = object> = {
  /** The same object for every caller with the same registry: the first one registers them. */
  of(metrics: { readonly registry: Registry }): M;
};

/** Declares the metrics of a feature; `make` gives each of them `registers`. */
export function metricSet<M extends object>(make: (registers: Registry[]) => M): MetricSet<M> {
  const made = new WeakMap<Registry, M>();
  return {
    of({ registry }) {
      const known = made.get(registry);
      if (known !== undefined) return known;
      const own = make([registry]);
      made.set(registry, own);
      return own;
    },
  };
}

/** Several sets of one feature, registered together. */
export function metricSets(...sets: readonly MetricSet[]): MetricSet {
  return {
    of(metrics) {
      for (const set of sets) set.of(metrics);
      return metrics;
    },
  };
}

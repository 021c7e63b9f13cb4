import { useMemo, useRef } from "preact/hooks";
import { useQuery } from "../../base/use-query.ts";
import {
  countsRequest,
  readCounts,
  type Counted,
  type Counts,
  type FacetCounts,
  type FieldCounts,
  type HistogramCounts,
  type Sample,
} from "./counts.ts";
import type { Scope } from "./queries.ts";
import { scopeKey } from "./use-rows.ts";

/** The counts of a scope, as far as they are known: what was counted before more was asked for stays. */
export type FoundCounts = {
  /** Rows of the scope; undefined until they are counted. */
  rows: number | undefined;
  sample: Sample | undefined;
  histogram: HistogramCounts | undefined;
  /** By `fieldKey`. */
  facets: ReadonlyMap<string, FacetCounts>;
  fields: ReadonlyMap<string, FieldCounts>;
  error: Error | null;
  isCounting: boolean;
  countAgain: () => void;
};

/**
 * Counts by one request, which is cancelled when something else is asked for. Another facet of the same scope leaves the
 * counts that are there until the new ones come.
 */
export function useCounts(database: string, scope: Scope | undefined, counted: Counted): FoundCounts {
  const key = scope === undefined ? undefined : scopeKey(database, scope);
  const body = scope === undefined ? undefined : countsRequest(database, scope, counted);
  const asked = useQuery<Counts>({
    key: ["explore", "counts", scope?.run, body],
    read: (signal) => (body === undefined ? Promise.reject(new Error("there is no range")) : readCounts(body, signal)),
    isEnabled: body !== undefined,
    staleMs: Number.POSITIVE_INFINITY,
  });
  const scopeText = JSON.stringify(key);
  const last = useRef<{ scopeText: string; by: string | undefined; counts: Counts } | undefined>(undefined);
  if (asked.data !== undefined && body !== undefined) {
    last.current = { scopeText, by: counted.by, counts: asked.data };
  }
  const known = last.current?.scopeText === scopeText ? last.current : undefined;
  const counts = known?.counts;
  const facets = useMemo(() => byField(counts?.facets ?? []), [counts]);
  const fields = useMemo(() => byField(counts?.fields ?? []), [counts]);
  return {
    rows: counts?.rows,
    sample: counts?.sampled ?? undefined,
    histogram: known?.by === counted.by ? counts?.histogram : undefined,
    facets,
    fields,
    error: asked.error,
    isCounting: asked.isFetching,
    countAgain: () => void asked.refetch(),
  };
}

/** The server repeats each field as it was asked for, which is what `fieldKey` writes. */
function byField<T extends { field: string[] }>(all: readonly T[]): ReadonlyMap<string, T> {
  return new Map(all.map((one) => [JSON.stringify(one.field), one]));
}

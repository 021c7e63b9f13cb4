import {
  MutationObserver,
  QueryObserver,
  type MutationObserverResult,
  type QueryObserverResult,
} from "@tanstack/query-core";
import { useCallback, useEffect, useState } from "preact/hooks";
import { queryClient } from "./query-client.ts";

export type QueryOptions<T> = {
  key: readonly unknown[];
  /** Rejects with an `ApiError`. */
  read: (signal: AbortSignal) => Promise<T>;
  /** Not asked while false. */
  isEnabled?: boolean;
  staleMs?: number;
  /** Asked again and again while the page is visible. */
  everyMs?: number;
};

/** Data of the server, by its key: all that ask for one key share one request. */
export function useQuery<T>(options: QueryOptions<T>): QueryObserverResult<T> {
  const { key, read, isEnabled, staleMs, everyMs } = options;
  const wanted = {
    queryKey: key,
    queryFn: ({ signal }: { signal: AbortSignal }) => read(signal),
    ...(isEnabled !== undefined && { enabled: isEnabled }),
    ...(staleMs !== undefined && { staleTime: staleMs }),
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
  };
  const [observer] = useState(() => new QueryObserver<T>(queryClient, wanted));
  const [, draw] = useState(0);
  useEffect(() => observer.subscribe(() => draw((count) => count + 1)), [observer]);
  observer.setOptions(wanted);
  return observer.getOptimisticResult(queryClient.defaultQueryOptions(wanted));
}

export type Mutation<T, V> = MutationObserverResult<T, Error, V> & { run: (variables: V) => Promise<T | undefined> };

/** A change on the server. `run` resolves to its result, or to undefined where it failed: then `error` has the reason. */
export function useMutation<T, V>(change: (variables: V) => Promise<T>): Mutation<T, V> {
  const [observer] = useState(() => new MutationObserver<T, Error, V>(queryClient, { mutationFn: change }));
  const [, draw] = useState(0);
  observer.setOptions({ mutationFn: change });
  useEffect(() => observer.subscribe(() => draw((count) => count + 1)), [observer]);
  const run = useCallback((variables: V) => observer.mutate(variables).catch(() => undefined), [observer]);
  return { ...observer.getCurrentResult(), run };
}

import { useEffect, useRef, useState } from "preact/hooks";
import { useQuery } from "../../base/use-query.ts";
import { readRows } from "./explore-api.ts";
import type { Page } from "./paging.ts";
import type { Scope } from "./queries.ts";
import { prepared, raw } from "./sql.ts";

export type FoundPages = {
  /** Pages from the newest on. */
  groups: readonly Page[];
  error: unknown;
  isFetching: boolean;
  /** Whether there may be older rows. */
  hasOlder: boolean;
  isReadingOlder: boolean;
  olderError: unknown;
  readOlder: () => void;
  readAgain: () => void;
};

/** What identifies the scope in a cache. */
export function scopeKey(database: string, { table, moments, condition, run }: Scope): readonly unknown[] {
  return [database, table, moments.fromMs, moments.toMs, prepared(condition ?? raw("")), run];
}

/** Rows of the scope, page by page. */
export function useRows(database: string, scope: Scope | undefined): FoundPages {
  const key = scope === undefined ? [] : scopeKey(database, scope);
  const first = useQuery<Page>({
    key: ["explore", "rows", ...key],
    read: (signal) =>
      scope === undefined
        ? Promise.reject(new Error("there is no range"))
        : readRows(database, scope, undefined, signal),
    isEnabled: scope !== undefined,
    staleMs: Number.POSITIVE_INFINITY,
  });
  const [older, setOlder] = useState<{ pages: readonly Page[]; isReading: boolean; error: unknown }>(NONE);
  const aborter = useRef<AbortController | undefined>(undefined);
  const text = JSON.stringify(key);
  useEffect(() => {
    setOlder(NONE);
    return () => aborter.current?.abort();
  }, [text]);
  const groups = first.data === undefined ? [] : [first.data, ...older.pages];
  const next = groups.at(-1)?.older;
  const readOlder = (): void => {
    if (scope === undefined || next === undefined || older.isReading) return;
    const own = new AbortController();
    aborter.current = own;
    setOlder((now) => ({ ...now, isReading: true, error: undefined }));
    readRows(database, scope, next, own.signal).then(
      (page) => {
        if (!own.signal.aborted)
          setOlder((now) => ({ pages: [...now.pages, page], isReading: false, error: undefined }));
      },
      (error: unknown) => {
        if (!own.signal.aborted) setOlder((now) => ({ ...now, isReading: false, error }));
      },
    );
  };
  return {
    groups,
    error: first.error,
    isFetching: first.isFetching,
    hasOlder: next !== undefined,
    isReadingOlder: older.isReading,
    olderError: older.error,
    readOlder,
    readAgain: () => void first.refetch(),
  };
}

const NONE = { pages: [], isReading: false, error: undefined };

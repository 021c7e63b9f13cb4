import { useEffect, useRef, useState } from "preact/hooks";
import type { RunningResult } from "../../results/running-result.ts";
import { rowsOf, type Rows } from "./rows.ts";
import { runQuery, type PreparedQuery } from "./run-query.ts";

/** What a panel draws: the rows of each query, the result itself where it is shown as a table, and what went wrong. */
export type PanelRun = {
  isRunning: boolean;
  rows: readonly Rows[];
  /** Of the first query; only where `keepsResult`. */
  result: RunningResult | undefined;
  error: Error | undefined;
};

const NOTHING: PanelRun = { isRunning: false, rows: [], result: undefined, error: undefined };

/**
 * Runs the queries of a panel whenever `key` is another one; undefined begins nothing new. The rows before stay until the
 * next are there. Everything ends with the component.
 */
export function usePanelRun(
  queries: readonly PreparedQuery[],
  key: string | undefined,
  keepsResult: boolean,
): PanelRun {
  const [run, setRun] = useState<PanelRun>(NOTHING);
  const begun = useRef<string | undefined>(undefined);
  const stop = useRef(new AbortController());
  const kept = useRef<RunningResult | undefined>(undefined);
  useEffect(() => {
    if (key === undefined || key === begun.current) return;
    begun.current = key;
    stop.current.abort();
    const own = (stop.current = new AbortController());
    setRun((now) => ({ ...now, isRunning: true }));
    const begin = async (): Promise<void> => {
      const next = await runAll(queries, keepsResult, own.signal);
      if (next === undefined) return;
      kept.current?.close();
      kept.current = next.result;
      setRun(next);
    };
    void begin();
  }, [key]);
  useEffect(
    () => () => {
      stop.current.abort();
      kept.current?.close();
    },
    [],
  );
  return run;
}

/** Undefined once it is aborted. */
async function runAll(
  queries: readonly PreparedQuery[],
  keepsResult: boolean,
  signal: AbortSignal,
): Promise<PanelRun | undefined> {
  const results = await Promise.all(queries.map((query) => runQuery(query, signal)));
  const there = results.filter((result) => result !== undefined);
  const close = () => {
    for (const result of there) result.close();
  };
  if (there.length < queries.length || signal.aborted) {
    close();
    return undefined;
  }
  const error = there.find((result) => result.error !== undefined)?.error;
  if (error !== undefined) {
    close();
    return { ...NOTHING, error };
  }
  const [first] = there;
  if (keepsResult) {
    for (const result of there.slice(1)) result.close();
    return { ...NOTHING, result: first };
  }
  const rows = await Promise.all(there.map(rowsOf));
  close();
  return signal.aborted ? undefined : { ...NOTHING, rows };
}

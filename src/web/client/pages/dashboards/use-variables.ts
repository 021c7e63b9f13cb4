import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Variable } from "./document.ts";
import { bound, type Parameters, type ParameterValue } from "./parameters.ts";
import { runQuery, type PreparedQuery } from "./run-query.ts";
import type { Bounds } from "./time-range.ts";
import {
  inOrderOfUse,
  rangeParameters,
  stateOf,
  valueOf,
  type ChosenValues,
  type VariableOptions,
} from "./variables.ts";

export type VariableState = { variable: Variable; value: ParameterValue | undefined; options: VariableOptions };

/** As many as a variable of a list may have. */
const MOST_VALUES = 1_000;

/**
 * The variables with their values, and what queries may name. The values of a query are read when the page opens, and
 * again when the query names something that has another value now. A query that failed is asked again with the next turn.
 */
export function useVariables(
  variables: readonly Variable[],
  chosen: ChosenValues,
  bounds: Bounds,
  turn: number,
): { states: readonly VariableState[]; parameters: Parameters } {
  const { ordered, circular } = useMemo(() => inOrderOfUse(variables), [variables]);
  const [read, setRead] = useState<ReadonlyMap<string, VariableOptions>>(new Map());
  const wanted = new Map<string, PreparedQuery>();
  const parameters = rangeParameters(bounds);
  const states = new Map<Variable, VariableState>();
  for (const variable of ordered) {
    const options = circular.has(variable)
      ? { error: new Error("its query depends on itself through other variables") }
      : optionsOf(variable, parameters, read, wanted);
    const value = valueOf(variable, chosen, options);
    states.set(variable, { variable, value, options });
    parameters.set(variable.name.toLowerCase(), stateOf(variable, value, options, bounds));
  }
  useReads(wanted, turn, setRead);
  return { states: variables.flatMap((variable) => states.get(variable) ?? []), parameters };
}

/** Adds the query that has to run for them to `wanted`. */
function optionsOf(
  variable: Variable,
  parameters: Parameters,
  read: ReadonlyMap<string, VariableOptions>,
  wanted: Map<string, PreparedQuery>,
): VariableOptions {
  if (variable.type === "text") return { values: [] };
  if (variable.type !== "query") return { values: variable.values };
  const binding = bound(variable.query, parameters);
  if (binding.kind === "refused") return { error: new Error(binding.problem) };
  if (binding.kind === "waiting") return { isWaiting: true };
  const query = { ...variable.query, params: binding.params, limit: MOST_VALUES };
  const key = JSON.stringify(query);
  wanted.set(key, query);
  return read.get(key) ?? { isWaiting: true };
}

type SetRead = (change: (now: ReadonlyMap<string, VariableOptions>) => ReadonlyMap<string, VariableOptions>) => void;

/** Runs each query once, a failed one again with the next turn; what no variable needs any more is forgotten. */
function useReads(wanted: ReadonlyMap<string, PreparedQuery>, turn: number, setRead: SetRead): void {
  const running = useRef(new Map<string, AbortController>());
  const keys = [...wanted.keys()].join("\n");
  useEffect(() => {
    for (const [key, stop] of running.current) {
      if (wanted.has(key)) continue;
      stop.abort();
      running.current.delete(key);
    }
    setRead((now) => new Map([...now].filter(([key]) => wanted.has(key))));
    for (const [key, query] of wanted) {
      if (running.current.has(key)) continue;
      const stop = new AbortController();
      running.current.set(key, stop);
      void readValues(query, stop.signal).then((options) => {
        if (options === undefined) return;
        if ("error" in options) running.current.delete(key);
        setRead((now) => new Map(now).set(key, options));
      });
    }
  }, [keys, turn]);
  useEffect(
    () => () => {
      for (const stop of running.current.values()) stop.abort();
      running.current.clear();
    },
    [],
  );
}

/** The first column, each value once; NULL is no value. Undefined once it is aborted. */
async function readValues(query: PreparedQuery, signal: AbortSignal): Promise<VariableOptions | undefined> {
  const result = await runQuery(query, signal);
  if (result === undefined) return undefined;
  try {
    if (result.error !== undefined) return { error: result.error };
    if (result.columns.length === 0) return { values: [] };
    const cells = await Promise.all(Array.from({ length: result.rows }, (_cell, row) => result.cell(row, 0)));
    return { values: [...new Set(cells.flatMap(({ text }) => (text === null ? [] : [text])))] };
  } finally {
    result.close();
  }
}

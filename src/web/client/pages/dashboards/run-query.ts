import { newId } from "../../base/clock.ts";
import { RunningResult } from "../../results/running-result.ts";
import type { PanelQuery } from "./document.ts";
import type { ParameterValue } from "./parameters.ts";
import { Slots } from "./slots.ts";

/** A query with everything that decides its rows, apart from the tables. */
export type PreparedQuery = PanelQuery & {
  params: Readonly<Record<string, ParameterValue>>;
  /** Rows at most. */
  limit: number;
};

const slots = new Slots(4);

/**
 * Runs a query to its end. Resolves to its result, which the caller closes, also one that failed; to undefined once the
 * signal is aborted: then everything is closed.
 */
export async function runQuery(query: PreparedQuery, signal: AbortSignal): Promise<RunningResult | undefined> {
  return await slots.run(signal, () => ended(query, signal));
}

function ended(query: PreparedQuery, signal: AbortSignal): Promise<RunningResult | undefined> {
  return new Promise((resolve) => {
    const leave = () => {
      result.close();
      resolve(undefined);
    };
    const result: RunningResult = new RunningResult(requestOf(query), () => {
      if (result.isRunning) return;
      signal.removeEventListener("abort", leave);
      resolve(result);
    });
    signal.addEventListener("abort", leave, { once: true });
  });
}

/** Values go beside the text as JSON, which has lists and all of Unicode; a header has neither. */
function requestOf({ language, text, database, params, limit }: PreparedQuery) {
  return {
    path: "/v1/query",
    headers: {
      "Content-Type": "application/json",
      "X-Database": database,
      "X-Engine-Query-ID": newId(),
      "X-Engine-Row-Limit": String(limit),
    },
    body: JSON.stringify({ query: text, language, ...(language === "sql" && { params }) }),
  };
}

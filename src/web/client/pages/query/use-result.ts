import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../../base/announce.ts";
import { requestJson } from "../../base/api.ts";
import type { ApiError } from "../../base/api-error.ts";
import { newId } from "../../base/clock.ts";
import { plural } from "../../base/format.ts";
import { queryClient } from "../../base/query-client.ts";
import { RunningResult } from "../../results/running-result.ts";

/** What is run. */
export type Run = { text: string; language: "sql" | "kql"; database: string; limit: number; isExplained?: boolean };

/** `queryId` is the name under which the server knows the query. */
export type ResultOfRun = { run: Run; result: RunningResult; queryId: string };

/** The result of a tab: one at a time, the last one stays until another begins. */
export function useResult(): {
  current: ResultOfRun | undefined;
  start: (run: Run) => void;
  stop: () => void;
} {
  const [current, setCurrent] = useState<ResultOfRun | undefined>();
  const [, draw] = useState(0);
  const latest = useRef<RunningResult | undefined>(undefined);
  const start = useCallback((run: Run) => {
    latest.current?.close();
    let hasEnded = false;
    const queryId = newId();
    const result: RunningResult = new RunningResult(requestOf(run, queryId), () => {
      if (latest.current !== result) return;
      draw((count) => count + 1);
      // A sort or a search of the rows changes a result that has ended.
      if (result.isRunning || hasEnded) return;
      hasEnded = true;
      announce(result.error === undefined ? plural(result.received, "row") : failureTitle(result.error));
      void keepInHistory(run, result);
    });
    latest.current = result;
    setCurrent({ run, result, queryId });
  }, []);
  const stop = useCallback(() => latest.current?.stop(), []);
  useEffect(() => () => latest.current?.close(), []);
  return { current, start, stop };
}

/** That somebody ended a query is no failure of it. */
export function failureTitle({ code }: ApiError): string {
  return code === "cancelled" ? "The query was ended." : "The query failed.";
}

function requestOf({ text, language, database, limit, isExplained = false }: Run, queryId: string) {
  const isKql = language === "kql";
  return {
    path: isKql && isExplained ? "/v1/query?explain=true" : "/v1/query",
    headers: {
      "Content-Type": isKql ? "application/x-kql" : "application/sql",
      "X-Database": database,
      "X-Engine-Query-ID": queryId,
      ...(limit > 0 && { "X-Engine-Row-Limit": String(limit) }),
    },
    body: isExplained && !isKql ? `EXPLAIN ${text}` : text,
  };
}

/** A history that is not kept costs nobody their rows. */
async function keepInHistory({ text, language, database }: Run, result: RunningResult): Promise<void> {
  const outcome = result.error?.code ?? (result.state === "stopped" ? "cancelled" : "ok");
  const entry = {
    language,
    text,
    database,
    outcome,
    rows: result.received,
    elapsed_ms: Math.round(result.elapsedMs ?? 0),
  };
  await requestJson("/v1/query-history", { json: entry, isQuiet: true }).catch(() => undefined);
  await queryClient.invalidateQueries({ queryKey: ["query-history"] });
}

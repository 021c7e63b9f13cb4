import { useEffect, useState } from "preact/hooks";
import { requestJson } from "../../base/api.ts";
import { clock } from "../../base/clock.ts";
import { formatBytes } from "../../base/format.ts";
import { queryClient } from "../../base/query-client.ts";
import { useQuery } from "../../base/use-query.ts";
import type { ResultOfRun } from "./use-result.ts";

/** What a server knows of one query, as `GET /v1/queries/{id}` has it. */
export type QueryRecord = {
  id: string;
  node: { id: string; name: string };
  database: string;
  subject: string;
  is_own: boolean;
  text: string;
  state: "running" | "ended";
  stage: string | null;
  outcome: string;
  ended_by: string | null;
  elapsed_ms: number;
  /** Of the stages that are over. */
  stages_ms: Readonly<Record<string, number>>;
  percent: number | null;
  bytes_planned: number | null;
  bytes_ready: number | null;
  bytes_read: number | null;
  memory_bytes: number | null;
  spill_bytes: number | null;
};

/** In the order in which a query goes through them. */
const STAGES = [
  { id: "queue", name: "Queue", doing: "Waiting for its turn" },
  { id: "translate", name: "Translate", doing: "Translating to SQL" },
  { id: "parse", name: "Parse", doing: "Parsing" },
  { id: "plan", name: "Plan", doing: "Planning" },
  { id: "fetch", name: "Fetch", doing: "Fetching data" },
  { id: "scan", name: "Scan", doing: "Scanning" },
  { id: "stream", name: "Send", doing: "Sending rows" },
] as const;

/** What a query is doing, in words. A stage that this page does not know has its own name. */
export function stageTitle(stage: string | null): string {
  return STAGES.find(({ id }) => id === stage)?.doing ?? stage ?? "Running";
}

export type StageTime = { id: string; name: string; ms: number };

function rankOf(stage: string): number {
  const rank = STAGES.findIndex(({ id }) => id === stage);
  return rank === -1 ? STAGES.length : rank;
}

/** How long each stage took that is over, in the order in which they come. */
export function stageTimes(stagesMs: QueryRecord["stages_ms"]): StageTime[] {
  return Object.entries(stagesMs)
    .map(([id, ms]) => ({ id, name: STAGES.find((stage) => stage.id === id)?.name ?? id, ms }))
    .toSorted((a, b) => rankOf(a.id) - rankOf(b.id));
}

/** How far a query is: `value` from 0 to 1 where the server knows a share, and what it is a share of. */
export type QueryProgress = { text: string; value?: number };

/**
 * The percent of the scan where there is one, else the bytes that have been fetched of those that were planned, else
 * the stage alone. Other stages have no share that anybody knows.
 */
export function progressOf({ stage, percent, bytes_planned: planned, bytes_ready: ready }: QueryRecord): QueryProgress {
  const text = stageTitle(stage);
  if (percent !== null) return { text: `${text}, ${Math.floor(percent)} %`, value: Math.min(percent, 100) / 100 };
  if (stage !== "fetch" || planned === null || ready === null || planned === 0) return { text };
  return { text: `${text}, ${formatBytes(ready)} of ${formatBytes(planned)}`, value: Math.min(ready / planned, 1) };
}

/** Most queries are over sooner, and are asked about once, after their end. */
const FIRST_ASKED_AFTER_MS = 500;
const RUNNING_EVERY_MS = 1_000;
/** The server may learn a moment later than the page that the last row has been read. */
const ENDING_EVERY_MS = 300;

export type RecordOfRun = { record: QueryRecord | undefined; error: Error | null };

/** What the server knows of a run: while it runs, and once more after its end, with the times of all its stages. */
export function useQueryRecord({ queryId, result }: ResultOfRun): RecordOfRun {
  const { isRunning, state } = result;
  const [isLong, setLong] = useState(false);
  useEffect(() => (isRunning ? clock.after(FIRST_ASKED_AFTER_MS, () => setLong(true)) : undefined), [isRunning]);
  const key = ["query", queryId];
  const last = queryClient.getQueryState<QueryRecord>(key);
  const isFollowed = last?.error === null && last.data?.state !== "ended";
  const { data, error } = useQuery<QueryRecord>({
    key,
    read: (signal) => requestJson(`/v1/queries/${queryId}`, { signal }),
    // A query that was refused at once has no stages to speak of, and perhaps no record.
    isEnabled: isLong || state === "done",
    staleMs: Number.POSITIVE_INFINITY,
    ...(isRunning ? { everyMs: RUNNING_EVERY_MS } : isFollowed && { everyMs: ENDING_EVERY_MS }),
  });
  return { record: data, error };
}

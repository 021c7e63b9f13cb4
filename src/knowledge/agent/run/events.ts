/** The events of a run, as its client is sent them and as they are stored. `run_finished` is always the last. */
export type RunEvent =
  | { event: "session"; data: { sessionId: string } }
  | { event: "run_started"; data: RunStarted }
  | { event: "thinking_delta"; data: { text: string } }
  | { event: "answer_delta"; data: { text: string } }
  | { event: "tool_call"; data: { id: string; name: string; input: unknown; index: number } }
  | { event: "tool_result"; data: ToolResultData }
  | { event: "answer_final"; data: { text: string; citations: Citations } }
  | { event: "run_error"; data: { code: RunErrorCode; message: string; retryable: boolean } }
  | { event: "run_finished"; data: RunFinished };

export type RunStarted = {
  run_id: string;
  session_id: string;
  database: string;
  /** Null where none is set. */
  engine: { kind: string; model: string } | null;
  limits: { wall_clock_ms: number; tool_calls: number };
};

export type ToolResultData = {
  id: string;
  name: string;
  ok: boolean;
  /** What the model was told, without the fence around it. */
  output: unknown;
  /** Of a query: rows that the model was shown, and of the whole result. */
  rows?: number;
  total_rows?: number;
  /** Of a query: what it was asked of, for one that wants to ask it again. */
  snapshot_id?: string;
  truncated: boolean;
  duration_ms: number;
};

/** What an answer rests on. */
export type Citations = {
  queries: { language: "sql" | "kql"; text: string; database: string; snapshot_id: string; total_rows: number }[];
  /** Ids of memories that the model was shown. */
  memories: string[];
};

export const RUN_ERROR_CODES = [
  "timeout",
  "tool_loop",
  "engine_failed",
  "engine_timeout",
  "rate_limited",
  "context_too_large",
  "cancelled",
  "interrupted",
  "internal",
  "not_configured",
] as const;
export type RunErrorCode = (typeof RUN_ERROR_CODES)[number];

export const RUN_STATUSES = ["running", "done", "failed", "cancelled"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export type Usage = { input_tokens: number; output_tokens: number; total_tokens: number };

export type RunFinished = {
  run_id: string;
  status: Exclude<RunStatus, "running">;
  duration_ms: number;
  tool_calls: number;
  usage: Usage;
};

/** An event with its number in the run, from 1 on: the `id` of the stream. */
export type NumberedEvent = RunEvent & { seq: number };

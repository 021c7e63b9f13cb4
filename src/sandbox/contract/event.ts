import type { RecordValue } from "../../catalog/records.ts";

/** Everything that is kept of what happens in a sandbox, by the names of the specification. */
export const SANDBOX_EVENT_TYPES = [
  "sandbox_state_changed",
  "provisioning_step",
  "provisioning_complete",
  "provisioning_failed",
  "stats",
  "log_line",
  "session_created",
  "session_completed",
  "session_failed",
  "text_delta",
  "text_complete",
  "tool_use_start",
  "tool_use_complete",
  "tool_result",
  "error",
] as const;
export type SandboxEventType = (typeof SANDBOX_EVENT_TYPES)[number];

/** One that is not in the log yet. `data` is what the specification lists for its type. */
export type NewSandboxEvent = {
  type: SandboxEventType;
  /** On the clock of whoever saw it, in ms since 1970. */
  atMs: number;
  data: Readonly<Record<string, unknown>>;
  /** Of an event of one session. */
  sessionId?: string | undefined;
};

/** One that is about to be written; `at` is its time. */
export type StoredEvent = Pick<NewSandboxEvent, "type" | "data" | "sessionId"> & { at: RecordValue };

/** One of the log: `seq` counts from 1 in each sandbox, without gaps. */
export type SandboxEvent = NewSandboxEvent & { sandboxId: string; seq: number };

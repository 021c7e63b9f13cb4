import type { Cut } from "../../support/load-plan.ts";
import type { Target } from "./target.ts";

/** What one generator process is told to send, and what it tells when it is done (`drive-child.ts`). */
export type DrivePlan = {
  target: Target;
  requests: readonly RequestPlan[];
  /** At least one. */
  connections: number;
  pace: Pace | undefined;
  durationMs: number;
};

/** Without a pace every connection sends its next request when it has the answer to its last. */
export type Pace = { perSecond: number } & ({ phase: number } | { poissonSeed: number });

/** A request that is sent for its share of all. `name` is what figures call it. */
export type RequestPlan = { name: string; share: number } & (
  | ({ kind: "ingest"; file: string; cut: Cut; tables: readonly string[] } & BodyPlan)
  | ({ kind: "otlp"; records: number } & BodyPlan)
  | { kind: "query"; sql: string }
  | { kind: "health" }
);

/** `keyPrefix` begins every idempotency key; without it requests have none. */
type BodyPlan = { keyPrefix?: string; compression: "none" | "gzip" | "zstd" };

export type DriveResult = {
  cpuSeconds: number;
  offered: number;
  backlog: number;
  /** How long those waited that were never sent. */
  abandonedMs: Float64Array;
  latenessMs: Float64Array;
  firstFailure: string | undefined;
  /** In the order of the plan's. */
  requests: RequestResult[];
};

export type RequestResult = {
  accepted: number;
  /** Of the accepted, those answered before the duration was over. */
  acceptedInTime: number;
  /** Answers of 429. */
  refused: number;
  /** Any other answers but 200, broken connections, and answers that did not come in time. */
  failed: number;
  /** Of accepted requests: from when they fell due, and from their first byte. */
  latencyMs: Float64Array;
  serviceMs: Float64Array;
  rows: number;
  /** Before compression. */
  bytes: number;
};

/** In this order. `go` names the moment to begin, in milliseconds since the epoch. */
export type ToDriver = { kind: "prepare"; plan: DrivePlan } | { kind: "go"; startAtMs: number };
export type FromDriver = { kind: "ready" } | { kind: "done"; result: DriveResult };

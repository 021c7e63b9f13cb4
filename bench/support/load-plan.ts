/**
 * What a load generator is told to do. The generator is a process of its own (`generator-child.ts`), so that it takes
 * no time of the benchmark's, and its CPU can be told apart from the server's.
 */
export type LoadPlan = {
  host: string;
  port: number;
  /** Request target. */
  path: string;
  headers: Readonly<Record<string, string>>;
  /** Values of `X-Table`, in turn; none sends no such header. */
  tables: readonly string[];
  /** Every request gets an `X-Idempotency-Key` of its own that begins so; undefined sends none. */
  keyPrefix?: string;
  /** A file of NDJSON, and how it is cut into bodies. */
  file: string;
  cut: Cut;
  connections: number;
  /**
   * Without: every connection sends its next request when it has the answer to its last, until each body was sent
   * once; 429 is retried, anything else but 200 fails the run. With: requests fall due at this rate for this long,
   * whatever the server does; bodies are repeated; any answer is counted. One that finds no idle connection is not sent,
   * or waits for one: its latency counts from when it fell due.
   */
  pace?: { perSecond: number; durationMs: number; waits?: true };
  /** Without a pace: repeats the bodies, each time under other keys, and begins no request after so long. */
  repeatForMs?: number;
  /** Whether the result is to tell of every accepted request when it was sent. */
  keepsTimes?: boolean;
};

export type Cut = { sizeBytes: number } | { rows: number };

export type LoadResult = {
  wallSeconds: number;
  /** Of the generator's process. */
  cpuSeconds: number;
  accepted: number;
  /** Answers of 429. */
  refused: number;
  /** Answers of anything else, and connections that broke under a request. */
  failed: number;
  /** The first of these, for the reader. */
  firstFailure?: string;
  /** Paced requests that fell due while every connection was busy. */
  unsent: number;
  /** Of accepted requests, from the first byte sent, or from when a paced one fell due, to the last received. */
  latencyMs: { p50: number; p99: number; max: number };
  /** Rows and extent bytes as the acknowledgements say; 0 for servers that say nothing. */
  rowsAcknowledged: number;
  bytesAcknowledged: number;
  /** NDJSON bytes of accepted requests. */
  bytesAccepted: number;
  /** By body: how often it was accepted. */
  acceptedByBody: number[];
  /** By key, of every accepted request: when its first byte was sent, milliseconds since the epoch. */
  sentAtMs?: Record<string, number>;
};

/** Messages between a benchmark and its generator, in this order. */
export type ToGenerator = { kind: "prepare"; plan: LoadPlan } | { kind: "go" };
export type FromGenerator = { kind: "ready"; bodies: number } | { kind: "done"; result: LoadResult };

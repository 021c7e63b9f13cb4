import { CliError } from "../failure.ts";
import type { CliInput } from "../context.ts";
import type { Batch } from "./batcher.ts";
import { readBatches } from "./read-batches.ts";
import { sendBatch, type Ack, type Sender } from "./send-batch.ts";
import { PushWarnings } from "./warnings.ts";

/** What has been acknowledged so far. */
export type PushTotals = {
  rows: number;
  /** Rows of requests that the server already had. */
  replayedRows: number;
  requests: number;
  replayedRequests: number;
  inputBytes: number;
  snapshotId: string | undefined;
  /** What did not fit, of all requests that were no replays: those do not say. */
  warnings: PushWarnings;
};

/** A request that was acknowledged, and how long that took. */
export type Acknowledged = { number: number; batch: Batch; ack: Ack; elapsedMs: number };

export type PushOptions = {
  input: CliInput;
  sender: Sender;
  /** Each request's key is this, `-` and its number from 0. */
  keyPrefix: string;
  /** See `ReadOptions.maxAgeMs`. */
  maxAgeMs?: number;
  onProgress: (totals: PushTotals) => void;
  /** Told of each request. */
  onAck?: ((acknowledged: Acknowledged) => void) | undefined;
};

/**
 * Sends the input in requests, one at a time, while the next is being read.
 * @throws CliError saying how far it came, and how to go on.
 */
export async function push(options: PushOptions): Promise<PushTotals> {
  const { input, sender, keyPrefix } = options;
  const totals: PushTotals = {
    rows: 0,
    replayedRows: 0,
    requests: 0,
    replayedRequests: 0,
    inputBytes: 0,
    snapshotId: undefined,
    warnings: new PushWarnings(),
  };
  let aged = false;
  const read = { clock: sender.clock, onAged: () => void (aged = true) };
  const batches = readBatches(input, options.maxAgeMs === undefined ? read : { ...read, maxAgeMs: options.maxAgeMs });
  try {
    let reading = lookAhead(batches);
    for (;;) {
      const next = await reading;
      if (next.done === true) return totals;
      reading = lookAhead(batches);
      await sendOne(next.value, totals, options);
    }
  } catch (error) {
    // Whoever feeds us (`tail -f`) would otherwise keep the process alive.
    input.destroy();
    throw error instanceof CliError ? withProgress(error, totals, aged ? undefined : keyPrefix) : error;
  }
}

/** Starts to read the next batch; a failure is kept until somebody waits for it. */
function lookAhead(batches: AsyncGenerator<Batch>): Promise<IteratorResult<Batch, unknown>> {
  const reading = batches.next();
  reading.catch(() => undefined);
  return reading;
}

async function sendOne(batch: Batch, totals: PushTotals, options: PushOptions): Promise<void> {
  const { clock } = options.sender;
  const startedMs = clock.monotonicMs();
  const ack = await sendBatch(options.sender, batch, `${options.keyPrefix}-${totals.requests}`);
  totals.requests++;
  totals.warnings.add(ack.warnings, batch.firstLine);
  options.onAck?.({ number: totals.requests, batch, ack, elapsedMs: clock.monotonicMs() - startedMs });
  totals.rows += ack.rows;
  totals.inputBytes += batch.body.length;
  totals.snapshotId = ack.snapshotId;
  if (ack.replayed) {
    totals.replayedRequests++;
    totals.replayedRows += ack.rows;
  }
  options.onProgress(totals);
}

/**
 * The same input is cut the same way, so the same key skips what is stored already. Not when batches were cut by time.
 */
function withProgress(error: CliError, totals: PushTotals, keyPrefix: string | undefined): CliError {
  const stored = totals.requests === 0 ? "nothing is stored" : `${totals.rows} rows before it are stored`;
  const resumable = totals.requests > 0 && keyPrefix !== undefined;
  const next = resumable
    ? `; the same input with --idempotency-key ${keyPrefix} goes on without storing them twice`
    : "";
  return new CliError(`${error.message} (${stored}${next})`, error.exitCode, { cause: error });
}

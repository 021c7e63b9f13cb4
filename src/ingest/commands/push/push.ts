import { CliError } from "../../../client/failure.ts";
import type { Batch, Origin } from "../../../io/rows/batcher.ts";
import { FileError } from "./file-error.ts";
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
  /** What did not fit, of all requests that were not replays: replays do not say. */
  warnings: PushWarnings;
};

export function noTotals(): PushTotals {
  return {
    rows: 0,
    replayedRows: 0,
    requests: 0,
    replayedRequests: 0,
    inputBytes: 0,
    snapshotId: undefined,
    warnings: new PushWarnings(),
  };
}

/** A request that was acknowledged, by its number from 1, and how long that took. */
export type Acknowledged = { number: number; batch: Batch; ack: Ack; elapsedMs: number };

export type PushOptions = {
  batches: AsyncGenerator<Batch>;
  origin: Origin;
  sender: Sender;
  /** The idempotency key of a request, by its number from 0. */
  keyOf: (batch: Batch, number: number) => string;
  /** How to go on after a failure without storing twice what is stored; undefined where that cannot be done. */
  resumeHint: () => string | undefined;
  /** Filled as requests are acknowledged: what is in it stays true when the push fails. */
  totals: PushTotals;
  onProgress: () => void;
  /** Told of each request. */
  onAck: ((acknowledged: Acknowledged) => void) | undefined;
};

/**
 * Sends the input in requests, one at a time, while the next is being read.
 * @throws CliError saying how far it came, and how to go on.
 */
export async function push(options: PushOptions): Promise<void> {
  const { batches, totals } = options;
  try {
    let reading = lookAhead(batches);
    for (;;) {
      const next = await reading;
      if (next.done === true) return;
      reading = lookAhead(batches);
      await sendOne(next.value, options);
    }
  } catch (error) {
    throw error instanceof CliError ? withProgress(error, totals, options.resumeHint()) : error;
  } finally {
    // Not waited for: what is being read may never come.
    batches.return(undefined).catch(() => undefined);
  }
}

/** Starts to read the next batch; a failure is kept until somebody waits for it. */
function lookAhead(batches: AsyncGenerator<Batch>): Promise<IteratorResult<Batch, unknown>> {
  const reading = batches.next();
  reading.catch(() => undefined);
  return reading;
}

async function sendOne(batch: Batch, options: PushOptions): Promise<void> {
  const { sender, keyOf, totals, origin, onProgress, onAck } = options;
  const startedMs = sender.clock.monotonicMs();
  const ack = await sendBatch(sender, batch, keyOf(batch, totals.requests), origin);
  totals.requests++;
  onAck?.({ number: totals.requests, batch, ack, elapsedMs: sender.clock.monotonicMs() - startedMs });
  totals.rows += ack.rows;
  totals.inputBytes += batch.body.length;
  totals.snapshotId = ack.snapshotId;
  totals.warnings.add(ack.warnings);
  if (ack.replayed) {
    totals.replayedRequests++;
    totals.replayedRows += ack.rows;
  }
  onProgress();
}

function withProgress(error: CliError, { requests, rows }: PushTotals, hint: string | undefined): CliError {
  const stored = requests === 0 ? "nothing is stored" : `${rows} rows before it are stored`;
  const next = requests > 0 && hint !== undefined ? `; ${hint}` : "";
  const message = `${error.message} (${stored}${next})`;
  return error instanceof FileError
    ? new FileError(message, error)
    : new CliError(message, error.exitCode, { cause: error });
}

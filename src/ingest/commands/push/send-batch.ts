import { backoffMs } from "../../../core/backoff.ts";
import { sleep, type Clock } from "../../../core/clock.ts";
import type { Random } from "../../../core/random.ts";
import {
  apiFailure,
  connectionFailure,
  neverConnected,
  readApiError,
  readText,
  type ClientReply,
  type EngineClient,
  type Target,
} from "../../../client/client.ts";
import { CliError } from "../../../client/failure.ts";
import { lineIn, type Batch, type Origin } from "../../../io/rows/batcher.ts";
import { FileError } from "./file-error.ts";
import { readWarnings, type AckWarning } from "./warnings.ts";

export type PushTarget = Target & {
  database: string;
  table: string;
  /** Whether new columns get types by their values, else they are strings. */
  inferTypes: boolean;
};

export type Sender = {
  client: EngineClient;
  target: PushTarget;
  clock: Clock;
  random: Random;
  /** Told before each wait for another attempt. */
  onRetry: (reason: string, delayMs: number) => void;
  /** Set once any request reached the server: from then on a refused connection is a restart, and worth waiting for. */
  reached: boolean;
};

/** The acknowledgement of one request. */
export type Ack = { rows: number; snapshotId: string; replayed: boolean; warnings: readonly AckWarning[] };

const TIMEOUT_MS = 120_000;
const MAX_ATTEMPTS = 10;
const RETRY = { firstMs: 200, mostMs: 10_000 } as const;
/** A server may ask for more patience than that; it is asked again all the same. */
const MAX_RETRY_AFTER_MS = 60_000;
/** Busy, draining, or a proxy that lost its server. With a key each may be sent again without harm. */
const RETRIED = new Set([408, 429, 502, 503, 504]);

type Attempt = { ack: Ack } | { failure: CliError; retryAfterMs?: number; final: boolean };

/**
 * Sends one batch under its idempotency key until it is acknowledged: after a lost connection it is unknown whether
 * the server has the rows, and the key makes it harmless to send them again.
 * @throws CliError when the server refuses the rows, or after the last attempt.
 */
export async function sendBatch(sender: Sender, batch: Batch, key: string, origin: Origin): Promise<Ack> {
  for (let attempt = 1; ; attempt++) {
    const result = await tryOnce(sender, { batch, origin }, key);
    if ("ack" in result) return result.ack;
    if (result.final || attempt === MAX_ATTEMPTS) throw result.failure;
    const delayMs = Math.max(result.retryAfterMs ?? 0, Math.round(backoffMs(RETRY, attempt - 1, sender.random)));
    sender.onRetry(result.failure.message, delayMs);
    await sleep(sender.clock, delayMs);
  }
}

type Sent = { batch: Batch; origin: Origin };

async function tryOnce(sender: Sender, sent: Sent, key: string): Promise<Attempt> {
  const { target } = sender;
  try {
    const reply = await sender.client.send({
      method: "POST",
      path: "/v1/ingest",
      headers: {
        "content-type": "application/x-ndjson",
        "x-database": target.database,
        "x-table": target.table,
        "x-engine-infer-types": String(target.inferTypes),
        "x-idempotency-key": key,
      },
      body: sent.batch.body,
      timeoutMs: TIMEOUT_MS,
    });
    sender.reached = true;
    if (reply.status === 200) return { ack: parseAck(await readText(reply), target, sent.batch) };
    return await refusal(reply, sender, sent);
  } catch (error) {
    if (error instanceof CliError) throw error;
    const unreachable = neverConnected(error);
    sender.reached ||= !unreachable;
    return { failure: connectionFailure(error, target), final: unreachable && !sender.reached };
  }
}

/** Refused for the rows themselves: those of another input may be taken. */
const ROWS_REFUSED = new Set([400, 413, 422]);

async function refusal(reply: ClientReply, sender: Sender, sent: Sent): Promise<Attempt> {
  const error = await readApiError(reply);
  const retryAfterMs = parseRetryAfter(reply.header("retry-after"), sender.clock);
  const final = !RETRIED.has(reply.status);
  const placed = apiFailure({ ...error, message: `${placeOf(sent, error.line)}${error.message}` }, sender.target);
  return {
    failure: !final
      ? apiFailure(error, sender.target)
      : ROWS_REFUSED.has(reply.status)
        ? new FileError(placed.message, placed)
        : placed,
    final,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** Where in the whole input the refused line is; the server counts from the start of the request. */
function placeOf({ batch, origin }: Sent, line: number | undefined): string {
  const { lines } = batch;
  const { shown, unit } = origin;
  const first = lineIn(batch, 1);
  if (line !== undefined) return `${unit} ${lineIn(batch, line)} of ${shown}: `;
  return lines === 1 ? `${unit} ${first} of ${shown}: ` : `${unit}s ${first} to ${lineIn(batch, lines)} of ${shown}: `;
}

/** `Retry-After` as seconds or as a date (RFC 9110 §10.2.3). */
function parseRetryAfter(header: string | undefined, clock: Clock): number | undefined {
  if (header === undefined) return undefined;
  const delayMs = /^\d+$/.test(header.trim()) ? Number(header) * 1_000 : Date.parse(header) - clock.nowMs();
  return Number.isNaN(delayMs) ? undefined : Math.min(Math.max(delayMs, 0), MAX_RETRY_AFTER_MS);
}

function parseAck(text: string, target: Target, batch: Batch): Ack {
  try {
    const value = JSON.parse(text) as Record<string, unknown> | null;
    const rows = value?.["rows_ingested"];
    const snapshotId = value?.["snapshot_id"];
    if (typeof rows === "number" && typeof snapshotId === "string") {
      const warnings = readWarnings(value?.["warnings"], batch);
      return { rows, snapshotId, replayed: value?.["replayed"] === true, warnings };
    }
  } catch {
    // Falls through: whatever it is, it is no acknowledgement.
  }
  throw new CliError(`what answers at ${target.url} is no engine: its answer is no acknowledgement`);
}

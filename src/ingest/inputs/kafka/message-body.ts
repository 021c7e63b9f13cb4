import { MIN_SHARED_BYTES, takeShared } from "../../../core/buffer-pool.ts";
import { LIMITS } from "../../../core/limits.ts";
import { valueOf, type KafkaMessage } from "./record-batch.ts";

/**
 * Messages as NDJSON. A message is one JSON object, over as many lines as it likes, or several, a line each.
 */

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const TAB = 9;
const OPEN_BRACE = 0x7b;
const NS_PER_MS = 1_000_000n;
/** What 64 bits of nanoseconds since 1970 hold. */
const MOST_MS = 9_223_372_036_854;

/** Why a message cannot be a row, as far as that shows without reading it; undefined where it may be one. */
export function obviousProblem(message: KafkaMessage): string | undefined {
  const { bytes, valueStart, valueEnd } = message;
  if (valueEnd - valueStart > LIMITS.ingestBodyBytes) {
    return `the value has ${valueEnd - valueStart} bytes; at most ${LIMITS.ingestBodyBytes} are accepted`;
  }
  if (bytes[valueStart] === OPEN_BRACE && valueEnd > valueStart) return undefined;
  const isBlank = bytes.subarray(valueStart, valueEnd).every(isWhite);
  return isBlank ? "the value is empty: a message is a JSON object" : undefined;
}

/** The value as lines of NDJSON: an object over several lines becomes one line. */
export function linesOf(message: KafkaMessage): Buffer {
  const value = valueOf(message) ?? Buffer.alloc(0);
  const last = value.findLastIndex((byte) => !isWhite(byte));
  const text = value.subarray(0, last + 1);
  if (!text.includes(LINE_FEED)) return text;
  const start = text.findIndex((byte) => !isWhite(byte));
  const feed = text.indexOf(LINE_FEED, start);
  if (feed === -1 || isJson(text.subarray(start, feed))) return text;
  // Within a string JSON has no line feed, so blanks in their place change nothing.
  const line = Buffer.from(text);
  for (let at = 0; at < line.length; at++) {
    if (line[at] === LINE_FEED || line[at] === CARRIAGE_RETURN) line[at] = SPACE;
  }
  return line;
}

/** A body and the time of arrival of each of its lines. */
export type MessageBody = { bytes: Buffer; arrivals: BigInt64Array<ArrayBuffer> };

/**
 * Messages as one body, a line each or several. The body lies in shared memory where that is worth it, and whoever takes
 * it gives it back (`releaseShared`). Rows without a time get that of their message.
 */
export function bodyOf(messages: readonly KafkaMessage[], nowNs: bigint): MessageBody {
  const texts = messages.map((message) => textOf(message));
  const sizeBytes = texts.reduce((sum, { end, start }) => sum + end - start + 1, 0);
  const bytes = takeBuffer(sizeBytes);
  let at = 0;
  let lines = 0;
  for (const { bytes: source, start, end, lines: own } of texts) {
    source.copy(bytes, at, start, end);
    at += end - start;
    bytes[at++] = LINE_FEED;
    lines += own;
  }
  const arrivals = new BigInt64Array(lines);
  let line = 0;
  for (const [i, { lines: own }] of texts.entries()) {
    const arrival = arrivalOf(messages[i]?.timestampMs ?? -1, nowNs);
    arrivals.fill(arrival, line, line + own);
    line += own;
  }
  return { bytes, arrivals };
}

type Text = { bytes: Buffer; start: number; end: number; lines: number };

function textOf(message: KafkaMessage): Text {
  const { bytes, valueStart: start, valueEnd: end } = message;
  if (!bytes.subarray(start, end).includes(LINE_FEED)) return { bytes, start, end, lines: 1 };
  const own = linesOf(message);
  return {
    bytes: own,
    start: 0,
    end: own.length,
    lines: 1 + own.reduce((n, byte) => n + Number(byte === LINE_FEED), 0),
  };
}

function takeBuffer(sizeBytes: number): Buffer {
  if (sizeBytes < MIN_SHARED_BYTES) return Buffer.allocUnsafe(sizeBytes);
  return Buffer.from(takeShared(sizeBytes), 0, sizeBytes);
}

function arrivalOf(timestampMs: number, nowNs: bigint): bigint {
  return timestampMs < 0 || timestampMs > MOST_MS ? nowNs : BigInt(timestampMs) * NS_PER_MS;
}

function isWhite(byte: number): boolean {
  return byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB;
}

function isJson(text: Buffer): boolean {
  try {
    JSON.parse(text.toString());
    return true;
  } catch {
    return false;
  }
}

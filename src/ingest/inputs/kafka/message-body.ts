import { copyBytes, MIN_SHARED_BYTES, takeShared } from "../../../core/buffer-pool.ts";
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
 *
 * Messages that lie behind one another are copied together, and what lies between them is blanked: a copy of its own for
 * each message, into shared memory, took a CPU-second per million.
 */
export function bodyOf(messages: readonly KafkaMessage[], nowNs: bigint): MessageBody {
  const runs = runsOf(messages);
  const bytes = takeBuffer(runs.reduce((sum, { start, end }) => sum + end - start + 1, 0));
  const lines = new Uint32Array(messages.length).fill(1);
  let at = 0;
  for (const run of runs) at = copyRun(messages, run, { bytes, at, lines });
  return { bytes: bytes.subarray(0, at), arrivals: arrivalsOf(messages, lines, nowNs) };
}

/** Messages from `first` up to `next`, whose values lie within these bytes, each a little behind the one before it. */
type Run = { first: number; next: number; bytes: Buffer; start: number; end: number };

/** What may lie between two values that are copied together: the key, and what a record has besides. */
const MOST_BETWEEN_BYTES = 64;

function runsOf(messages: readonly KafkaMessage[]): Run[] {
  const runs: Run[] = [];
  let run: Run | undefined;
  for (let i = 0; i < messages.length; i++) {
    const { bytes, valueStart, valueEnd } = messages[i] as KafkaMessage;
    const between = run?.bytes === bytes ? valueStart - run.end : 0;
    if (run !== undefined && between > 0 && between <= MOST_BETWEEN_BYTES) {
      run.end = valueEnd;
      run.next = i + 1;
    } else {
      run = { first: i, next: i + 1, bytes, start: valueStart, end: valueEnd };
      runs.push(run);
    }
  }
  return runs;
}

/** Writes a run from `at` on, with how many lines each message has. Returns where it ends. */
function copyRun(
  messages: readonly KafkaMessage[],
  run: Run,
  { bytes, at, lines }: { bytes: Buffer; at: number; lines: Uint32Array },
): number {
  copyBytes(run.bytes.subarray(run.start, run.end), bytes, at);
  const shift = at - run.start;
  const end = run.end + shift;
  for (let i = run.first + 1; i < run.next; i++) {
    const until = (messages[i] as KafkaMessage).valueStart + shift;
    for (let k = (messages[i - 1] as KafkaMessage).valueEnd + shift; k < until; k++) bytes[k] = SPACE;
  }
  if (bytes.subarray(at, end).includes(LINE_FEED)) return copyLines(messages, run, { bytes, at, lines });
  for (let i = run.first; i < run.next; i++) bytes[(messages[i] as KafkaMessage).valueEnd + shift] = LINE_FEED;
  return end + 1;
}

/** The same where a message has several lines. None becomes longer, so there is room. */
function copyLines(
  messages: readonly KafkaMessage[],
  run: Run,
  { bytes, at, lines }: { bytes: Buffer; at: number; lines: Uint32Array },
): number {
  let end = at;
  for (let i = run.first; i < run.next; i++) {
    const text = linesOf(messages[i] as KafkaMessage);
    copyBytes(text, bytes, end);
    end += text.length;
    bytes[end++] = LINE_FEED;
    lines[i] = 1 + text.reduce((n, byte) => n + Number(byte === LINE_FEED), 0);
  }
  return end;
}

function arrivalsOf(messages: readonly KafkaMessage[], lines: Uint32Array, nowNs: bigint): MessageBody["arrivals"] {
  const arrivals = new BigInt64Array(lines.reduce((sum, own) => sum + own, 0));
  let line = 0;
  let last = { timestampMs: -1, arrival: nowNs };
  for (let i = 0; i < messages.length; i++) {
    const { timestampMs } = messages[i] as KafkaMessage;
    if (timestampMs !== last.timestampMs) last = { timestampMs, arrival: arrivalOf(timestampMs, nowNs) };
    for (const end = line + (lines[i] as number); line < end; line++) arrivals[line] = last.arrival;
  }
  return arrivals;
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

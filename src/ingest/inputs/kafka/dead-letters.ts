import { isUtf8 } from "node:buffer";
import type { ColumnSpec } from "../../../format/types.ts";
import { keyOf, valueOf, type KafkaMessage } from "./record-batch.ts";

/**
 * Dead letters: messages that cannot be rows, in a table of their own in the database of their topic. Nothing of them is
 * interpreted, so this table takes them all.
 */
export const DEAD_LETTERS_TABLE = "kafka_dead_letters";

export const DEAD_LETTERS_COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "topic", type: { kind: "string" } },
  { name: "partition", type: { kind: "int" } },
  { name: "offset", type: { kind: "long" } },
  { name: "key", type: { kind: "string" } },
  { name: "value", type: { kind: "string" } },
  { name: "encoding", type: { kind: "string" } },
  { name: "reason", type: { kind: "string" } },
  { name: "props", type: { kind: "dynamic" } },
];

/** What was there, or what is known of what was not. */
export type DeadLetter = { offset: number; reason: string; message?: KafkaMessage };

/** A letter must fit a request however much its text grows as JSON. */
const KEPT_BYTES = 8 * 1024 * 1024;
const LATEST_MS = 9_223_372_036_854;

/** The letter as a line of NDJSON. Key and value are text where both are UTF-8, else base64. */
export function letterLine(topic: string, partition: number, letter: DeadLetter): string {
  const { offset, message } = letter;
  const { text: value, isCut } = message === undefined ? NOTHING : kept(valueOf(message));
  const { text: key } = message === undefined ? NOTHING : kept(keyOf(message));
  const encoding = [key, value].every((part) => part === undefined || isUtf8(part)) ? "utf8" : "base64";
  const cut = isCut ? `; only the first ${KEPT_BYTES} bytes of the value are kept` : "";
  return JSON.stringify({
    ...timeOf(message),
    topic,
    partition,
    offset,
    key: key?.toString(encoding),
    value: value?.toString(encoding),
    encoding: message === undefined ? undefined : encoding,
    reason: `${letter.reason}${cut}`,
  });
}

const NOTHING = { text: undefined, isCut: false };

function kept(bytes: Buffer | undefined): { text: Buffer | undefined; isCut: boolean } {
  return { text: bytes?.subarray(0, KEPT_BYTES), isCut: bytes !== undefined && bytes.length > KEPT_BYTES };
}

function timeOf(message: KafkaMessage | undefined): { at?: string } {
  const timestampMs = message?.timestampMs ?? -1;
  return timestampMs < 0 || timestampMs > LATEST_MS ? {} : { at: new Date(timestampMs).toISOString() };
}

import { createRequire } from "node:module";
import type * as KafkaJs from "kafkajs";
import { markAborted, splitBatches, type AbortedTransaction, type FetchedBatch } from "./fetched-batches.ts";
import type { RecordBatch } from "./record-batch.ts";
import { replaceModule } from "./replace-module.ts";

/**
 * kafkajs, without its reading of messages.
 *
 * kafkajs 2.2.4 decodes all that a fetch brings before it hands anything over: a batch that it cannot decode (an unknown
 * codec, a decompression bomb, one of more than about 120,000 messages, which it spreads over the stack) fails the fetch,
 * and is fetched again for ever, with all other partitions behind it. There is no way around it from outside. So two of
 * its modules are replaced before it is loaded: the one that decodes, by one that only finds where batches begin, and the
 * one that leaves out aborted transactions, by one that marks them. Its consumer then handles batches as if each were a
 * message, and every batch comes to `eachBatch`, with which the caller knows that none was passed over. Records are
 * decoded where a failure belongs to the batch alone (`record-batch.ts`).
 *
 * The version is pinned; tests in `test/kafka` fail when another one has other modules.
 */
const DECODES_MESSAGES = "kafkajs/src/protocol/requests/fetch/v4/decodeMessages.js";
const FILTERS_ABORTED = "kafkajs/src/consumer/filterAbortedMessages.js";

/** What kafkajs takes for a message. */
type PseudoMessage = { offset: string; isControlRecord: false; fetched: FetchedBatch | { problem: string } };

/** Of its decoder, what is used here. */
type Decoder = { readInt32(): number; canReadBytes(bytes: number): boolean; readBytes(bytes: number): Buffer };

let loaded: typeof KafkaJs | undefined;

/** Loads kafkajs, once. */
export function loadKafkaJs(): typeof KafkaJs {
  if (loaded !== undefined) return loaded;
  const load = createRequire(import.meta.url);
  replaceModule(load, DECODES_MESSAGES, decodeMessages);
  replaceModule(load, FILTERS_ABORTED, filterAborted);
  loaded = load("kafkajs") as typeof KafkaJs;
  return loaded;
}

/** What `eachBatch` of kafkajs is given; `problem` says why nothing could be told apart after the batches. */
export function fetchedOf(batch: Pick<KafkaJs.Batch, "messages">): {
  batches: RecordBatch[];
  problem: string | undefined;
} {
  const fetched = pseudoMessagesOf(batch).map((message) => message.fetched);
  const last = fetched.at(-1);
  return {
    batches: fetched.flatMap((one) => ("batch" in one ? [one.batch] : [])),
    problem: last !== undefined && "problem" in last ? last.problem : undefined,
  };
}

function pseudoMessagesOf({ messages }: Pick<KafkaJs.Batch, "messages">): PseudoMessage[] {
  return messages as unknown as PseudoMessage[];
}

/** Where the fetch of a batch began: not in the types of kafkajs. */
export function fetchedOffsetOf(batch: KafkaJs.Batch): number {
  return Number((batch as unknown as { fetchedOffset: string }).fetchedOffset);
}

// kafkajs waits for a promise.
async function decodeMessages(decoder: Decoder): Promise<PseudoMessage[]> {
  const sizeBytes = decoder.readInt32();
  if (sizeBytes <= 0 || !decoder.canReadBytes(sizeBytes)) return [];
  const { batches, problem } = splitBatches(decoder.readBytes(sizeBytes));
  const messages = batches.map((fetched) => pseudoMessage(fetched.batch.lastOffset, fetched));
  // After all others, and never before what was asked for, which kafkajs would leave out.
  if (problem !== undefined) messages.push(pseudoMessage(Number.MAX_SAFE_INTEGER, { problem }));
  return messages;
}

function pseudoMessage(offset: number, fetched: PseudoMessage["fetched"]): PseudoMessage {
  return { offset: String(offset), isControlRecord: false, fetched };
}

function filterAborted(given: {
  messages: PseudoMessage[];
  abortedTransactions?: readonly AbortedTransaction[] | null;
}): PseudoMessage[] {
  const { messages, abortedTransactions } = given;
  markAborted(
    messages.flatMap(({ fetched }) => ("batch" in fetched ? [fetched] : [])),
    abortedTransactions ?? [],
  );
  return messages;
}

import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { jsonIn } from "../../../core/json-text.ts";

/** Transcripts of a coding agent: a file with a JSON object on each line. */

export type TranscriptMessage = { role: "user" | "assistant"; content: string; at?: string };

/** Of the end of the file; what came before was read by earlier hooks. */
const READ_BYTES = 4 * 1_048_576;
const MESSAGE_CHARS = 65_536;
const EXCHANGE_CHARS = 1_048_576;
const EXCHANGE_MESSAGES = 500;

/**
 * The last exchanges of a transcript: what a person asked, and what the agent said until they asked again. Each is always
 * the same, so that one that is kept twice is known.
 * @throws Error for what is no regular file
 */
export async function lastExchanges(path: string, count: number): Promise<TranscriptMessage[][]> {
  // A pipe or a device must not keep this waiting.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    return exchangesIn(await endOf(file)).slice(-count);
  } finally {
    await file.close();
  }
}

async function endOf(file: FileHandle): Promise<string> {
  const found = await file.stat();
  if (!found.isFile()) throw new Error("the transcript is no regular file");
  const start = Math.max(0, found.size - READ_BYTES);
  const bytes = Buffer.alloc(found.size - start);
  const { bytesRead } = await file.read(bytes, 0, bytes.length, start);
  const text = bytes.toString("utf8", 0, bytesRead);
  // The first line is cut off.
  return start === 0 ? text : text.slice(text.indexOf("\n") + 1);
}

function exchangesIn(text: string): TranscriptMessage[][] {
  const exchanges: TranscriptMessage[][] = [];
  for (const line of text.split("\n")) {
    const message = messageIn(line);
    if (message?.role === "user") exchanges.push([message]);
    else if (message !== undefined) exchanges.at(-1)?.push(message);
  }
  return exchanges.map(bounded);
}

function bounded(exchange: readonly TranscriptMessage[]): TranscriptMessage[] {
  let chars = 0;
  return exchange.slice(0, EXCHANGE_MESSAGES).filter(({ content }) => (chars += content.length) <= EXCHANGE_CHARS);
}

function messageIn(line: string): TranscriptMessage | undefined {
  const { type, message, timestamp, isMeta, isSidechain, isCompactSummary, toolUseResult } = objectIn(jsonIn(line));
  if (type !== "user" && type !== "assistant") return undefined;
  // What the agent's program wrote in the user's name, and what helpers of the agent said to each other.
  if ([isMeta, isSidechain, isCompactSummary].includes(true) || toolUseResult !== undefined) return undefined;
  const content = textsIn(objectIn(message)["content"]).filter(isSaid).join("\n").trim().slice(0, MESSAGE_CHARS);
  if (content === "") return undefined;
  const at = typeof timestamp === "string" && !Number.isNaN(Date.parse(timestamp)) ? timestamp.slice(0, 64) : undefined;
  return { role: type, content: content.toWellFormed(), ...(at !== undefined && { at }) };
}

/** Texts alone: results of tools are what others wrote. */
function textsIn(content: unknown): string[] {
  if (typeof content === "string") return [content];
  if (!Array.isArray(content)) return [];
  return (content as unknown[])
    .map(objectIn)
    .flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : []));
}

/** The agent's program puts outputs of commands, reminders and the like between tags. */
function isSaid(text: string): boolean {
  return !/^\s*<[a-z][a-z_-]*>/i.test(text);
}

function objectIn(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

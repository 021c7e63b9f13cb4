import type { ColumnSpec } from "../../format/types.ts";
import type { Batch } from "./batcher.ts";

/**
 * What goes to and comes from the process that reads CSV. In: the task as a line of JSON, then the bytes of the file.
 * Out: batches, each as three unsigned 32-bit integers (bytes of the body, number of rows, 0), the line of each row as a
 * 64-bit float, and the body; all little-endian.
 */
export type CsvTask = {
  /** What the file is called in messages. */
  shown: string;
  /** Of the table as it is: they say how values are written. */
  columns: readonly ColumnSpec[];
  /** About how large a batch is. */
  batchBytes: number;
};

const HEADER_BYTES = 12;
const LINE_BYTES = 8;
const NEWLINE = 0x0a;

export function encodeTask(task: CsvTask): Uint8Array {
  return Buffer.from(`${JSON.stringify(task)}\n`);
}

/** The task that the input begins with, and what comes behind it. */
export async function takeTask(
  input: AsyncIterable<Uint8Array>,
): Promise<{ task: CsvTask; rest: AsyncGenerator<Uint8Array> }> {
  const chunks = input[Symbol.asyncIterator]();
  let held = Buffer.alloc(0);
  let end = -1;
  while (end < 0) {
    const chunk = await chunks.next();
    if (chunk.done === true) throw new Error("the input ends before its task does");
    held = Buffer.concat([held, chunk.value]);
    end = held.indexOf(NEWLINE);
  }
  const task = JSON.parse(held.toString("utf8", 0, end)) as CsvTask;
  return { task, rest: following(held.subarray(end + 1), chunks) };
}

async function* following(first: Uint8Array, chunks: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (first.length > 0) yield first;
  for (let chunk = await chunks.next(); chunk.done !== true; chunk = await chunks.next()) yield chunk.value;
}

export function encodeBatch({ body, lineNumbers = [] }: Batch): Uint8Array {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + lineNumbers.length * LINE_BYTES + body.length);
  bytes.writeUInt32LE(body.length, 0);
  bytes.writeUInt32LE(lineNumbers.length, 4);
  bytes.writeUInt32LE(0, 8);
  lineNumbers.forEach((line, i) => bytes.writeDoubleLE(line, HEADER_BYTES + i * LINE_BYTES));
  bytes.set(body, HEADER_BYTES + lineNumbers.length * LINE_BYTES);
  return bytes;
}

/** The batches of an output. Throws for one that ends within a batch, or has one of more than `mostBytes`. */
export async function* decodeBatches(output: AsyncIterable<Uint8Array>, mostBytes: number): AsyncGenerator<Batch> {
  const input = new ExactInput(output);
  for (;;) {
    const header = await input.take(HEADER_BYTES);
    if (header === undefined) return;
    const [bodyBytes, rows] = [header.readUInt32LE(0), header.readUInt32LE(4)];
    const linesBytes = rows * LINE_BYTES;
    if (bodyBytes + linesBytes > mostBytes) throw new Error(`the reader sends a batch of ${bodyBytes} bytes`);
    const rest = await input.take(linesBytes + bodyBytes);
    if (rest === undefined) throw new Error("the reader ended within a batch");
    const lineNumbers = Array.from({ length: rows }, (_, i) => rest.readDoubleLE(i * LINE_BYTES));
    yield { body: rest.subarray(linesBytes), firstLine: lineNumbers[0] ?? 1, lines: rows, lineNumbers };
  }
}

/** Gives input in pieces of the sizes that are asked for. */
class ExactInput {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #held: Uint8Array[] = [];
  #heldBytes = 0;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Undefined at the end of the input. Throws when it ends within the piece. */
  async take(sizeBytes: number): Promise<Buffer | undefined> {
    while (this.#heldBytes < sizeBytes) {
      const chunk = await this.#chunks.next();
      if (chunk.done === true) {
        if (this.#heldBytes === 0) return undefined;
        throw new Error("the reader ended within a batch");
      }
      this.#held.push(chunk.value);
      this.#heldBytes += chunk.value.length;
    }
    const all = Buffer.concat(this.#held);
    const rest = all.subarray(sizeBytes);
    this.#held = rest.length === 0 ? [] : [rest];
    this.#heldBytes = rest.length;
    return all.subarray(0, sizeBytes);
  }
}

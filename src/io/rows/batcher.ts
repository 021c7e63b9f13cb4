import { copyBytes } from "../../core/buffer-pool.ts";
import { LIMITS } from "../../core/limits.ts";
import { UnreadableRows } from "./unreadable-rows.ts";

/** A request's worth of input: whole lines of NDJSON. */
export type Batch = {
  body: Buffer;
  /** 1-based line (or row) of the input with which the body begins. */
  firstLine: number;
  lines: number;
  /** Where the input is not NDJSON: the line with which each row begins. */
  lineNumbers?: readonly number[];
};

/** The line of the input for one of the request, both counted from 1. */
export function lineIn({ firstLine, lineNumbers }: Pick<Batch, "firstLine" | "lineNumbers">, line: number): number {
  return lineNumbers?.[line - 1] ?? firstLine + line - 1;
}

/** Gathers pieces of input into batches. How the input arrives in pieces makes no difference to where it is cut. */
export interface Cutter<Piece> {
  push(piece: Piece): void;
  /** The next batch that more input could not change; undefined while there is none. */
  takeFull(): Batch | undefined;
  /** All whole rows that are there, sooner than their number asks for; undefined when there is none. */
  takeLines(): Batch | undefined;
  /** What is left when the input ends. */
  takeRest(): Batch | undefined;
}

/** Where rows come from, for messages: `line 17 of data/events.csv`. */
export type Origin = { shown: string; unit: "line" | "row" };

const NEWLINE = 0x0a;

export const BATCH_BYTES = 8 * 2 ** 20;
const FIRST_BYTES = 32 * 1024;
const MANY_BYTES = 2 ** 20;
const SHORT_LINE_BYTES = 64;
const BYTES_BY_HAND = 512;

/**
 * Cuts input into batches at newlines. A batch has at most `batchBytes`; a line longer than that is a batch of its own,
 * up to `lineBytes`. How the input arrives in pieces makes no difference to where it is cut: the same input gives the
 * same batches, which is what lets a repeated push be recognised.
 */
export class Batcher implements Cutter<Uint8Array> {
  readonly #batchBytes: number;
  readonly #lineBytes: number;
  readonly #origin: Origin;
  #buffer: Buffer;
  #sizeBytes = 0;
  /** No newline lies in the buffer before this, once it is known that the first line is a long one. */
  #searchedBytes = 0;
  #line = 1;

  readonly #allocate: (sizeBytes: number) => Buffer;

  /**
   * @param allocate gives buffers of at least the size; what it gives is not given back here, but to whoever has the batch
   */
  constructor(
    origin: Origin,
    batchBytes = BATCH_BYTES,
    lineBytes: number = LIMITS.ingestBodyBytes,
    allocate: (sizeBytes: number) => Buffer = (sizeBytes) => Buffer.allocUnsafe(sizeBytes),
  ) {
    this.#origin = origin;
    this.#batchBytes = batchBytes;
    this.#lineBytes = lineBytes;
    this.#allocate = allocate;
    // Many inputs are small.
    this.#buffer = allocate(Math.min(batchBytes, FIRST_BYTES));
  }

  push(chunk: Uint8Array): void {
    this.#reserve(this.#sizeBytes + chunk.byteLength);
    copyBytes(chunk, this.#buffer, this.#sizeBytes);
    this.#sizeBytes += chunk.byteLength;
  }

  /**
   * The next batch that more input could not change; undefined while there is none.
   * @throws UnreadableRows when a line is longer than any request may be.
   */
  takeFull(): Batch | undefined {
    if (this.#sizeBytes <= this.#batchBytes) return undefined;
    const cut = this.#buffer.lastIndexOf(NEWLINE, this.#batchBytes - 1) + 1;
    return cut > 0 ? this.#take(cut) : this.#takeLongLine();
  }

  /** All whole lines that are there, sooner than their number asks for; undefined when there is none. */
  takeLines(): Batch | undefined {
    const cut = this.#sizeBytes === 0 ? 0 : this.#buffer.lastIndexOf(NEWLINE, this.#sizeBytes - 1) + 1;
    return cut > 0 ? this.#take(cut) : undefined;
  }

  /** What is left when the input ends, with or without a newline at its end. */
  takeRest(): Batch | undefined {
    if (this.#sizeBytes === 0) return undefined;
    if (this.#sizeBytes > this.#lineBytes) throw this.#tooLong();
    return this.#take(this.#sizeBytes);
  }

  #takeLongLine(): Batch | undefined {
    const end = this.#buffer.subarray(0, this.#sizeBytes).indexOf(NEWLINE, this.#searchedBytes);
    this.#searchedBytes = this.#sizeBytes;
    if ((end < 0 ? this.#sizeBytes : end) > this.#lineBytes) throw this.#tooLong();
    if (end < 0) return undefined;
    // Without its newline, so that a line of exactly the limit is still accepted.
    const batch = this.#take(end);
    this.#drop(1);
    this.#line = batch.firstLine + 1;
    return { ...batch, lines: 1 };
  }

  #take(cut: number): Batch {
    const body = this.#buffer.subarray(0, cut);
    const newlines = countNewlines(body);
    const lines = newlines + (body[cut - 1] === NEWLINE ? 0 : 1);
    const batch = { body, firstLine: this.#line, lines };
    this.#line += newlines;
    // The batch keeps the buffer; what follows moves to a new one.
    const rest = this.#buffer.subarray(cut, this.#sizeBytes);
    this.#buffer = this.#allocate(Math.max(this.#batchBytes, rest.length));
    copyBytes(rest, this.#buffer, 0);
    this.#sizeBytes = rest.length;
    this.#searchedBytes = 0;
    return batch;
  }

  #drop(count: number): void {
    this.#buffer.copyWithin(0, count, this.#sizeBytes);
    this.#sizeBytes -= count;
  }

  #reserve(neededBytes: number): void {
    if (neededBytes <= this.#buffer.length) return;
    // What comes in large pieces will fill a batch.
    const doubledBytes = Math.max(neededBytes, this.#buffer.length * 2);
    const larger = this.#allocate(neededBytes > MANY_BYTES ? Math.max(doubledBytes, this.#batchBytes) : doubledBytes);
    copyBytes(this.#buffer.subarray(0, this.#sizeBytes), larger, 0);
    this.#buffer = larger;
  }

  #tooLong(): UnreadableRows {
    return rowTooLong(this.#origin, this.#line, this.#lineBytes);
  }
}

export function rowTooLong({ shown, unit }: Origin, line: number, limitBytes: number): UnreadableRows {
  const message = `${unit} ${line} of ${shown} has more than ${limitBytes} bytes, the most that a row may have`;
  return new UnreadableRows(message, { line });
}

function countNewlines(body: Buffer): number {
  let count = 0;
  for (let from = 0; ;) {
    const at = body.indexOf(NEWLINE, from);
    if (at < 0) return count;
    count++;
    const isShort = at - from < SHORT_LINE_BYTES;
    from = at + 1;
    if (!isShort) continue;
    // A search costs as much as looking at some fifty bytes: one for each of many empty lines would take seconds.
    for (const end = Math.min(from + BYTES_BY_HAND, body.length); from < end; from++) {
      if (body[from] === NEWLINE) count++;
    }
  }
}

/** Whether the body has anything but blank lines; the server refuses a request without rows. */
export function hasRows(body: Uint8Array): boolean {
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte !== NEWLINE && byte !== 0x0d && byte !== 0x20 && byte !== 0x09) return true;
  }
  return false;
}

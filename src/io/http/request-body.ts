import { tmpdir } from "node:os";
import type { Clock } from "../../core/clock.ts";
import { copyBytes, MIN_SHARED_BYTES, releaseShared, takeShared } from "../../core/buffer-pool.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import { OverflowFile } from "./overflow-file.ts";
import { BodyDiscarded, MIN_BODY_BYTES_PER_SEC, type BodyOptions, type StreamOptions } from "./http.ts";

/** Where a body comes from: one connection of one driver. */
export interface BodySource {
  /** Stop to read from the connection. Pieces already under way may still be pushed. */
  pause(): void;
  /** Read on; somebody waits. */
  resume(): void;
  /** Nobody waits any more: the body is complete, failed or unwanted. */
  settled(): void;
}

const FIRST_BUFFER_BYTES = 64 * 1024;
/**
 * Of pieces that wait. A source that is paused brings little more, but for one: uWebSockets.js does not look up before
 * it has read all that a client on the same computer sends at the time, which may be gigabytes.
 */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Less is not worth the call. */
const MIN_FREED_BYTES = 16 * 1024;
/** A piece of a stream below this is no reason to take a whole buffer of the pool. */
const MIN_SHARED_PIECE_BYTES = 16 * 1024;

/**
 * The body of one request between a driver, which pushes pieces as they arrive, and a handler, which takes them whole
 * or one by one. What arrives before the handler asks is kept and the source paused; of what arrives all the same,
 * `MAX_WAITING_BYTES` are kept in memory, and the rest in a file.
 */
export class RequestBody {
  readonly #source: BodySource;
  readonly #clock: Clock;
  /** From Content-Length; undefined for a chunked body. */
  readonly #announcedBytes: number | undefined;
  #mode: "unclaimed" | "whole" | "pieces" | "unwanted" = "unclaimed";
  #complete: boolean;
  #error: Error | undefined;
  /** Whether some of it was dropped before a reader had it. */
  #isCut = false;
  #limitBytes = Infinity;
  #onGrow: ((sizeBytes: number) => void) | undefined;
  #receivedBytes = 0;
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  readonly #overflowFolder: string;
  /** Comes after `pieces`; while there is any of it, what arrives is appended to it. */
  #overflow: OverflowFile | undefined;
  #sharesPieces = false;
  #buffer: Uint8Array = new Uint8Array(0);
  #whole: PromiseWithResolvers<Uint8Array> | undefined;
  #wake: (() => void) | undefined;
  #waitSinceMs = 0;
  #waitedMs = 0;
  #lastPieceMs = 0;

  constructor(source: BodySource, clock: Clock, announcedBytes: number | undefined, overflowFolder = tmpdir()) {
    this.#source = source;
    this.#clock = clock;
    this.#announcedBytes = announcedBytes;
    this.#overflowFolder = overflowFolder;
    this.#complete = announcedBytes === 0;
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** Bytes that are still to come; infinite when nobody knows. */
  get missingBytes(): number {
    if (this.#complete) return 0;
    return this.#announcedBytes === undefined ? Infinity : this.#announcedBytes - this.#receivedBytes;
  }

  /** See `HttpRequest.body`. */
  async whole(limitBytes: number, { onGrow, shared = false }: BodyOptions = {}): Promise<Uint8Array> {
    this.#claim("whole", limitBytes);
    if (this.#announcedBytes === undefined) this.#onGrow = onGrow;
    const firstBytes = this.#announcedBytes ?? Math.max(this.#receivedBytes, Math.min(limitBytes, FIRST_BUFFER_BYTES));
    if (this.#error === undefined) this.#tryGrow(firstBytes);
    if (this.#error !== undefined) throw this.#error;
    if (this.#complete && this.#pieces.length <= 1 && this.#overflow === undefined)
      return this.#pieces.pop() ?? this.#buffer;
    const early = this.#pieces;
    this.#pieces = [];
    const overflow = this.#overflow;
    this.#overflow = undefined;
    this.#receivedBytes = 0;
    this.#buffer = shared ? bufferOf(this.#announcedBytes, firstBytes) : new Uint8Array(firstBytes);
    for (const piece of early) {
      this.#append(piece);
      free(piece);
    }
    // The buffer is at least as large as all that was received.
    if (overflow !== undefined) this.#receivedBytes += overflow.takeAll(this.#buffer.subarray(this.#receivedBytes));
    if (this.#complete) return this.#exact();
    this.#whole = Promise.withResolvers();
    this.#wait();
    return this.#whole.promise;
  }

  /** See `HttpRequest.stream`. */
  stream(limitBytes: number, { shared = false }: StreamOptions = {}): AsyncIterable<Uint8Array> {
    this.#sharesPieces = shared;
    this.#claim("pieces", limitBytes);
    const iterator: AsyncIterator<Uint8Array> = {
      next: () => this.#next(),
      return: async () => {
        this.discard();
        this.#isCut = false;
        return { done: true, value: undefined };
      },
    };
    return { [Symbol.asyncIterator]: () => iterator };
  }

  /**
   * Takes a piece; `last` completes the body. The bytes are copied, unless `stable` says that they are the body's from
   * here on.
   */
  push(piece: Uint8Array, last: boolean, stable = false): void {
    if (last) this.#complete = true;
    if (this.#mode === "unwanted") this.#receivedBytes += piece.length;
    else if (this.#receivedBytes + piece.length > this.#limitBytes) this.fail(tooLarge(this.#limitBytes));
    else if (this.#mode === "whole") this.#append(piece);
    else {
      this.#keep(piece, stable);
      stable = false;
    }
    if (stable) free(piece);
    if (last) this.#finish();
    else if (this.#whole !== undefined || this.#wake !== undefined) this.#lastPieceMs = this.#clock.monotonicMs();
  }

  /** Whoever reads, or will read, gets `error`; what still arrives is dropped. */
  fail(error: Error): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    const whole = this.#whole;
    this.discard();
    whole?.reject(error);
  }

  /** Drops what was not read and what still arrives. Who reads it in pieces gets `BodyDiscarded` for the rest. */
  discard(): void {
    if (this.#mode === "unwanted") return;
    this.#isCut = !this.#complete || this.#pieces.length > 0 || this.#overflow !== undefined;
    this.#mode = "unwanted";
    if (this.#pieces.length > 0) for (const piece of this.#pieces.splice(0)) releaseShared(piece);
    this.#overflow?.close();
    this.#overflow = undefined;
    this.#buffer = new Uint8Array(0);
    this.#whole = undefined;
    this.#stopWaiting();
    this.#source.settled();
  }

  /** Fails the body when a reader waits for a client that has gone silent, or nearly so. */
  checkProgress(idleTimeoutMs: number): void {
    if (this.#whole === undefined && this.#wake === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const waitedMs = this.#waitedMs + nowMs - this.#waitSinceMs;
    const silent = nowMs - this.#lastPieceMs >= idleTimeoutMs;
    const slow = waitedMs >= idleTimeoutMs && this.#receivedBytes * 1000 < waitedMs * MIN_BODY_BYTES_PER_SEC;
    if (silent || slow) this.fail(new EngineError("request_timeout", "the request's body did not arrive in time"));
  }

  #claim(mode: "whole" | "pieces", limitBytes: number): void {
    if (this.#error !== undefined) return;
    if (this.#mode !== "unclaimed") throw new Error("the body of this request was already taken");
    this.#mode = mode;
    this.#limitBytes = limitBytes;
    if (Math.max(this.#announcedBytes ?? 0, this.#receivedBytes) > limitBytes) this.fail(tooLarge(limitBytes));
  }

  async #next(): Promise<IteratorResult<Uint8Array>> {
    for (;;) {
      const value = this.#pieces.shift();
      if (value !== undefined) {
        this.#waitingBytes -= value.length;
        return { done: false, value };
      }
      if (this.#overflow !== undefined) return { done: false, value: await this.#takeOverflow(this.#overflow) };
      if (this.#error !== undefined) throw this.#error;
      if (this.#isCut) throw new BodyDiscarded();
      if (this.#complete || this.#mode === "unwanted") return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        this.#wait();
      });
    }
  }

  #wait(): void {
    this.#waitSinceMs = this.#lastPieceMs = this.#clock.monotonicMs();
    this.#source.resume();
  }

  #stopWaiting(): void {
    const wake = this.#wake;
    if (wake === undefined) return;
    this.#wake = undefined;
    this.#waitedMs += this.#clock.monotonicMs() - this.#waitSinceMs;
    wake();
  }

  #keep(piece: Uint8Array, stable: boolean): void {
    this.#receivedBytes += piece.length;
    if (this.#overflow !== undefined || this.#waitingBytes > MAX_WAITING_BYTES) this.#letOverflow(piece);
    else if (piece.length > 0) {
      this.#waitingBytes += piece.length;
      this.#pieces.push(stable ? piece : this.#copyOf(piece));
    }
    if (!this.#complete) this.#source.pause();
    this.#stopWaiting();
  }

  #copyOf(piece: Uint8Array): Uint8Array {
    if (!this.#sharesPieces || piece.length < MIN_SHARED_PIECE_BYTES) return new Uint8Array(piece);
    const copy = new Uint8Array(takeShared(piece.length), 0, piece.length);
    copyBytes(piece, copy, 0);
    return copy;
  }

  #letOverflow(piece: Uint8Array): void {
    try {
      this.#overflow ??= new OverflowFile(this.#overflowFolder);
      this.#overflow.append(piece);
    } catch (error) {
      const reason = `there is no room for a body that comes faster than it is taken: ${messageOf(error)}`;
      this.fail(new EngineError("insufficient_storage", reason));
    }
  }

  async #takeOverflow(overflow: OverflowFile): Promise<Uint8Array> {
    const piece = await overflow.take();
    if (overflow.isEmpty && this.#overflow === overflow) {
      this.#overflow = undefined;
      overflow.close();
    }
    return piece;
  }

  #append(piece: Uint8Array): void {
    const neededBytes = this.#receivedBytes + piece.length;
    if (neededBytes > this.#buffer.length) {
      const sizeBytes = Math.max(neededBytes, Math.min(2 * this.#buffer.length, this.#limitBytes));
      if (!this.#tryGrow(sizeBytes)) return;
      this.#buffer = resized(this.#buffer, sizeBytes);
    }
    copyBytes(piece, this.#buffer, this.#receivedBytes);
    this.#receivedBytes = neededBytes;
  }

  /** Asks whether the buffer may take so much memory; fails the body when it may not. */
  #tryGrow(sizeBytes: number): boolean {
    try {
      this.#onGrow?.(sizeBytes);
      return true;
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(messageOf(error)));
      return false;
    }
  }

  #finish(): void {
    this.#stopWaiting();
    this.#whole?.resolve(this.#exact());
    this.#whole = undefined;
    this.#source.settled();
  }

  #exact(): Uint8Array {
    const buffer = this.#buffer;
    this.#buffer = new Uint8Array(0);
    if (this.#receivedBytes === buffer.length) return buffer;
    return resized(buffer, this.#receivedBytes);
  }
}

/** A shared buffer where the length is known and large: it will not have to grow, and is worth sharing. */
function bufferOf(announcedBytes: number | undefined, firstBytes: number): Uint8Array {
  const worthSharing = announcedBytes !== undefined && announcedBytes >= MIN_SHARED_BYTES;
  return worthSharing ? new Uint8Array(takeShared(announcedBytes), 0, announcedBytes) : new Uint8Array(firstBytes);
}

/** The same bytes in a buffer of another size; shared ones have their final size from the start. */
function resized(bytes: Uint8Array, sizeBytes: number): Uint8Array {
  if (bytes.buffer instanceof ArrayBuffer) return new Uint8Array(bytes.buffer.transfer(sizeBytes));
  throw new Error("a shared body changes its size");
}

/**
 * Gives memory of a piece back at once. Left to the collector, the next pieces get other memory, and the kernel clears
 * each page of that first: 0.3 ms for each MiB of a body, of 0.5 in all (Node 22, 2026-11).
 */
function free({ buffer, byteLength }: Uint8Array): void {
  const isWhole = byteLength >= MIN_FREED_BYTES && byteLength === buffer.byteLength;
  if (isWhole && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

function tooLarge(limitBytes: number): EngineError {
  return new EngineError("body_too_large", `the body has more than ${limitBytes} bytes`);
}

import type { Clock } from "../../core/clock.ts";
import type { PreparedResponse } from "./response.ts";
import type { UwsResponse } from "./uws-library.ts";

/**
 * The library gathers what is written under one cork in a buffer of 16 KiB and sends it at the end. In versions before
 * 20.76 a write that doesn't fit into it is lost when the kernel's buffer is full just then; so none is larger than
 * this, but for `tryEnd`, which says what was taken.
 */
export const MAX_CORKED_BYTES = 12 * 1024;
/** The first write after one the kernel did not take: if it doesn't take this either, little piles up. */
const PROBE_BYTES = 256;

/** What the owner of a writer is told. */
export type WriterEvents = {
  /** The kernel takes no more for now: somebody should look after `stalledMs`, and `push` now and then. */
  clogged(): void;
  flowing(): void;
  /** Everything is handed over, and the library's response must not be called any more. */
  complete(): void;
};

/** Sends one response that may take longer than a turn of the event loop: a large body, or a streamed one. */
export class UwsWriter {
  readonly #server: { readonly clock: Clock; readonly draining: boolean };
  readonly #prepared: PreparedResponse;
  readonly #events: WriterEvents;
  #native: UwsResponse | undefined;
  #headSent = false;
  #complete = false;
  /** Whether the kernel has all of the part that is being sent. */
  #isTaken = false;
  #clogged = false;
  #takenAtMs = 0;
  #onWritable: (() => void) | undefined;
  /** Tries to send more. */
  #step: (() => void) | undefined;

  constructor(
    server: { readonly clock: Clock; readonly draining: boolean },
    native: UwsResponse,
    prepared: PreparedResponse,
    events: WriterEvents,
  ) {
    this.#server = server;
    this.#native = native;
    this.#prepared = prepared;
    this.#events = events;
    native.onWritable(() => {
      this.#takenAtMs = server.clock.monotonicMs();
      // As long as there is a handler the library sends what it has kept only when it is made to.
      this.push();
      this.#onWritable?.();
      return true;
    });
  }

  get clogged(): boolean {
    return this.#clogged;
  }

  /** How long the client has taken nothing, though there is something. */
  stalledMs(nowMs: number): number {
    return this.#clogged ? nowMs - this.#takenAtMs : 0;
  }

  /** Sends what the kernel takes, and makes the library's time limit start again. */
  push(): void {
    this.#native?.cork(() => this.#step?.());
  }

  /** The connection is closed. */
  gone(): void {
    this.#native = undefined;
    this.#onWritable?.();
  }

  /** Sends a body that is there in whole, without the library keeping a copy. */
  endInSteps(): void {
    const body = bytesOf(this.#prepared);
    this.#step = () => {
      const native = this.#native;
      if (native === undefined) return;
      this.#writeHead(native);
      const [, complete] = native.tryEnd(body.subarray(native.getWriteOffset()), body.length);
      if (complete) this.#completed();
    };
    this.push();
    if (this.#native !== undefined) this.#clog();
  }

  /** Sends a piece of a streamed body and waits until there is room for more; false when the client is gone. */
  async write(chunk: Uint8Array): Promise<boolean> {
    if (this.#prepared.lengthBytes !== undefined) return this.#writePart(chunk, this.#prepared.lengthBytes);
    let atBytes = 0;
    while (atBytes < chunk.length && this.#native !== undefined) {
      const piece = chunk.subarray(atBytes, atBytes + (this.#clogged ? PROBE_BYTES : MAX_CORKED_BYTES));
      atBytes += piece.length;
      if (this.#writePiece(this.#native, piece)) this.#flow();
      else await this.#writable();
    }
    return this.#native !== undefined;
  }

  /** The same for a body of known length, with whose last byte the response is complete. */
  async #writePart(chunk: Uint8Array, lengthBytes: number): Promise<boolean> {
    const startBytes = this.#native?.getWriteOffset() ?? 0;
    this.#isTaken = false;
    this.#step = () => {
      const native = this.#native;
      if (native === undefined || this.#isTaken) return;
      this.#writeHead(native);
      const [taken, complete] = native.tryEnd(chunk.subarray(native.getWriteOffset() - startBytes), lengthBytes);
      this.#isTaken = taken;
      if (complete) this.#completed();
    };
    this.push();
    while (!this.#isTaken && this.#native !== undefined) await this.#writable();
    this.#step = undefined;
    this.#flow();
    return this.#complete || this.#native !== undefined;
  }

  endStream(): void {
    const native = this.#native;
    if (native === undefined) return;
    this.#completed();
    native.cork(() => {
      this.#writeHead(native);
      // Not told to close the connection: having sent chunks, the library would write that header into the body.
      native.end();
    });
  }

  #writePiece(native: UwsResponse, piece: Uint8Array): boolean {
    let taken = false;
    native.cork(() => {
      this.#writeHead(native);
      taken = native.write(piece);
    });
    return taken;
  }

  #writable(): Promise<void> {
    if (!this.#clogged) this.#clog();
    return new Promise((resolve) => {
      this.#onWritable = resolve;
    });
  }

  #writeHead(native: UwsResponse): void {
    if (!this.#headSent) writeHead(native, this.#prepared, this.#server.draining);
    this.#headSent = true;
  }

  #clog(): void {
    this.#clogged = true;
    this.#takenAtMs = this.#server.clock.monotonicMs();
    this.#events.clogged();
  }

  #flow(): void {
    if (!this.#clogged) return;
    this.#clogged = false;
    this.#events.flowing();
  }

  #completed(): void {
    this.#complete = true;
    this.#native = undefined;
    this.#clogged = false;
    this.#events.complete();
  }
}

export function writeHead(native: UwsResponse, prepared: PreparedResponse, close: boolean): void {
  const { headers } = prepared;
  native.writeStatus(prepared.statusLine);
  for (let i = 0; i < headers.length; i += 2) native.writeHeader(headers[i] ?? "", headers[i + 1] ?? "");
  if (close) native.writeHeader("Connection", "close");
}

/** The body of a response that is not streamed. */
export function bytesOf(prepared: PreparedResponse): Uint8Array {
  const { body } = prepared;
  if (typeof body === "string") return Buffer.from(body);
  return body instanceof Uint8Array ? body : new Uint8Array(0);
}

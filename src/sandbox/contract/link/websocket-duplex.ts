import { Duplex } from "node:stream";
import { WebSocketClosedError, type WebSocketConnection } from "../../../io/http/websocket.ts";

const HIGH_WATER_BYTES = 256 * 1024;
/** What one message carries at most: short of what the other side takes. */
const MESSAGE_BYTES = 256 * 1024;

/**
 * A WebSocket as a stream of bytes, in binary messages whose borders mean nothing. Text messages do not belong to the
 * stream and go to `onText`.
 */
export class WebSocketDuplex extends Duplex {
  readonly #connection: WebSocketConnection;
  readonly #onText: (text: string) => void;
  #wake: (() => void) | undefined;
  #isReading = false;

  constructor(connection: WebSocketConnection, onText: (text: string) => void) {
    super({ highWaterMark: HIGH_WATER_BYTES });
    this.#connection = connection;
    this.#onText = onText;
    void connection.closed.then(() => this.destroy());
  }

  override _read(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
    if (this.#isReading) return;
    this.#isReading = true;
    void this.#receive();
  }

  override _write(piece: Uint8Array, _encoding: string, done: (error?: Error | null) => void): void {
    void this.#send([piece], done);
  }

  override _writev(pieces: { chunk: Uint8Array }[], done: (error?: Error | null) => void): void {
    void this.#send(gather(pieces.map(({ chunk }) => chunk)), done);
  }

  override _final(done: () => void): void {
    this.#connection.close();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#connection.close();
    this.#wake?.();
    done(error);
  }

  async #send(messages: readonly Uint8Array[], done: (error?: Error | null) => void): Promise<void> {
    try {
      for (const message of messages) await this.#connection.send(message);
    } catch (error) {
      done(error as Error);
      return;
    }
    done();
  }

  async #receive(): Promise<void> {
    try {
      for await (const message of this.#connection.messages()) {
        if (typeof message === "string") this.#onText(message);
        else if (!this.push(message) && !this.destroyed) await this.#room();
      }
      this.push(null);
    } catch (error) {
      if (!(error instanceof WebSocketClosedError)) this.destroy(error as Error);
    }
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** The same bytes in few messages: small pieces are joined. */
function gather(pieces: readonly Uint8Array[]): Uint8Array[] {
  const messages: Uint8Array[] = [];
  let joined: Uint8Array[] = [];
  let joinedBytes = 0;
  const flush = (): void => {
    const [only] = joined;
    if (only !== undefined) messages.push(joined.length === 1 ? only : Buffer.concat(joined, joinedBytes));
    joined = [];
    joinedBytes = 0;
  };
  for (const piece of pieces) {
    if (joinedBytes + piece.length > MESSAGE_BYTES) flush();
    joined.push(piece);
    joinedBytes += piece.length;
  }
  flush();
  return messages;
}

import type { ClientHttp2Stream, Http2Stream, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import { Readable } from "node:stream";
import { z } from "zod";
import { releaseShared } from "../../../core/buffer-pool.ts";
import { EngineError, ERROR_CODES, messageOf, type ErrorCode } from "../../../core/errors.ts";

/**
 * What goes over one stream of HTTP/2 in one direction: a head (four bytes of length, big-endian, and JSON), then the
 * body's bytes as they are, then trailers that say how it ended. A stream that ends without trailers was cut off: a reader
 * never takes a part for the whole.
 */
const END_HEADER = "x-end";
const ENDED_WELL = "ok";
const LENGTH_BYTES = 4;
const MESSAGE_CHARS = 2_000;
/** What waits for the reader of a body before its stream waits too. */
const HIGH_WATER_BYTES = 256 * 1024;

const wireFailure = z.object({ code: z.string(), message: z.string() });
export type WireFailure = z.output<typeof wireFailure>;

/** Throws `body_too_large` where it is. */
export function encodeHead(head: unknown, limitBytes: number): Buffer {
  const json = Buffer.from(JSON.stringify(head));
  if (json.length > limitBytes) {
    throw new EngineError("body_too_large", `what a call says beside its body has more than ${limitBytes} bytes`);
  }
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json]);
}

/** What both ends of a stream can do; the types of a client's and a server's differ in what is not used here. */
type AnyStream = ClientHttp2Stream | ServerHttp2Stream;

/**
 * Sends head and body, and says at the end whether the body was whole; resolves when that is done, or the stream closed.
 * A body whose reader has gone is destroyed.
 */
export async function sendMessage(stream: AnyStream, head: Buffer, body: Readable | undefined): Promise<void> {
  let failure: unknown;
  stream.once("wantTrailers", () => {
    const end = failure === undefined ? ENDED_WELL : encodeFailure(failure);
    stream.sendTrailers({ [END_HEADER]: end });
  });
  const giveUp = (): void => void body?.destroy();
  stream.once("close", giveUp);
  try {
    stream.write(head);
    if (body !== undefined) for await (const piece of body) await written(stream, piece as Uint8Array);
  } catch (error) {
    failure = error;
  }
  if (stream.closed || stream.destroyed) return;
  await new Promise<void>((resolve) => {
    stream.once("close", resolve);
    stream.end(() => resolve());
  });
}

/** Rejects when the stream is closed. A buffer that is shared is given back when it was sent. */
async function written(stream: Http2Stream, piece: Uint8Array): Promise<void> {
  if (stream.closed || stream.destroyed) throw new Error("the stream is closed");
  const hasRoom = stream.write(piece, (error) => {
    if (error === undefined || error === null) releaseShared(piece);
  });
  if (hasRoom) return;
  await new Promise<void>((resolve, reject) => {
    const drained = (): void => {
      stream.off("close", closed);
      resolve();
    };
    const closed = (): void => {
      stream.off("drain", drained);
      reject(new Error("the stream is closed"));
    };
    stream.once("drain", drained);
    stream.once("close", closed);
  });
}

/**
 * What comes over one stream: the head, and then the body to whoever takes it. `whole`: everything has come. One that is
 * destroyed before resets its stream.
 */
export class IncomingMessage extends Readable {
  readonly #stream: AnyStream;
  readonly #limitBytes: number;
  readonly #head = Promise.withResolvers<unknown>();
  /** What has come of the head. */
  #pieces: Buffer[] | undefined = [];
  #piecesBytes = 0;
  /** Where the head ends, once its length has come. */
  #headEndBytes: number | undefined;
  #end: string | undefined;
  #isAtEnd = false;
  #isWhole = false;

  constructor(stream: AnyStream, headLimitBytes: number) {
    super({ highWaterMark: HIGH_WATER_BYTES });
    this.#stream = stream;
    this.#limitBytes = headLimitBytes;
    this.#head.promise.catch(() => undefined);
    // Its cause is the end of the stream, which `close` reports too.
    stream.on("error", () => undefined);
    stream.on("data", (piece: Buffer) => this.#received(piece));
    stream.once("trailers", (headers: IncomingHttpHeaders) => {
      this.#end = String(headers[END_HEADER] ?? "");
      this.#finish();
    });
    stream.once("end", () => {
      this.#isAtEnd = true;
      this.#finish();
    });
    stream.once("close", () => {
      if (!this.#isWhole) this.#fail(cutOff());
    });
    // A failure is told to who reads, and to nobody where nobody does.
    this.on("error", () => undefined);
  }

  /** Rejects with `bad_request` for one that is none, and with `unavailable` when it does not come. */
  get head(): Promise<unknown> {
    return this.#head.promise;
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#pieces !== undefined) this.#head.reject(error ?? cutOff());
    // Nobody wants the rest.
    if (!this.#isAtEnd && !this.#stream.closed) this.#stream.close(constants.NGHTTP2_CANCEL);
    done(error);
  }

  #received(piece: Buffer): void {
    if (this.#pieces === undefined) {
      if (!this.push(piece)) this.#stream.pause();
      return;
    }
    this.#pieces.push(piece);
    this.#piecesBytes += piece.length;
    if (this.#piecesBytes < (this.#headEndBytes ?? LENGTH_BYTES)) return;
    const all = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces);
    const endBytes = LENGTH_BYTES + all.readUInt32BE();
    this.#headEndBytes = endBytes;
    this.#pieces = [all];
    if (endBytes > LENGTH_BYTES + this.#limitBytes) {
      this.#fail(new EngineError("bad_request", `a head of more than ${this.#limitBytes} bytes`));
      return;
    }
    if (all.length < endBytes) return;
    this.#pieces = undefined;
    this.#parse(all.subarray(LENGTH_BYTES, endBytes));
    const rest = all.subarray(endBytes);
    if (rest.length > 0 && !this.push(rest)) this.#stream.pause();
  }

  #parse(json: Buffer): void {
    try {
      this.#head.resolve(JSON.parse(json.toString()));
    } catch (error) {
      this.#fail(new EngineError("bad_request", `a head that is no JSON: ${messageOf(error)}`));
    }
  }

  /** Both have come: the last byte, and how it ended. */
  #finish(): void {
    if (!this.#isAtEnd || this.#end === undefined) return;
    if (this.#end !== ENDED_WELL) this.#fail(decodeFailure(this.#end));
    else if (this.#pieces === undefined) {
      this.#isWhole = true;
      this.push(null);
      this.emit("whole");
    } else this.#fail(new EngineError("bad_request", "a message without a head"));
  }

  #fail(error: Error): void {
    this.#head.reject(error);
    this.destroy(error);
  }
}

function cutOff(): EngineError {
  return new EngineError("unavailable", "the connection to the node broke, or was closed");
}

/** What may be told of a failure to the other side. */
export function failureOf(error: unknown): WireFailure {
  if (error instanceof EngineError) return { code: error.code, message: error.message.slice(0, MESSAGE_CHARS) };
  return { code: "internal", message: "an unexpected failure; the node's log says more" };
}

/** One of ours, whatever the other side says. */
export function errorOf(failure: unknown): EngineError {
  const { data } = wireFailure.safeParse(failure);
  if (data === undefined) return new EngineError("unavailable", "the node failed without saying how");
  const message = data.message.slice(0, MESSAGE_CHARS);
  return isErrorCode(data.code)
    ? new EngineError(data.code, message)
    : new EngineError("internal", `the node failed (${data.code.slice(0, 100)}): ${message}`);
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}

function encodeFailure(error: unknown): string {
  return Buffer.from(JSON.stringify(failureOf(error))).toString("base64url");
}

function decodeFailure(text: string): EngineError {
  try {
    return errorOf(JSON.parse(Buffer.from(text, "base64url").toString()));
  } catch {
    return errorOf(undefined);
  }
}

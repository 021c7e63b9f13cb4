import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** An answer; `body` is text. */
export type HttpAnswer = { status: number; body: string };

const HEAD_END = Buffer.from("\r\n\r\n");

/**
 * The leanest client of HTTP/1.1: one connection, one request at a time, answers with a Content-Length or in chunks (as
 * an edge sends them). A load generator that shares its machine with the server it measures must cost next to nothing.
 */
export class HttpConnection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #answer: PromiseWithResolvers<HttpAnswer> | undefined;
  #closed: Error | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#onData(chunk));
    socket.on("error", (error) => this.#onClose(error));
    socket.on("close", () => this.#onClose(new Error("the server closed the connection")));
  }

  /** With a `ca` (PEM) over TLS, the server's certificate being one that it has signed. */
  static open(host: string, port: number, ca?: string): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket = ca === undefined ? connect({ host, port }) : connectTls({ host, port, ca });
      socket.once("error", reject);
      socket.once(ca === undefined ? "connect" : "secureConnect", () => {
        socket.off("error", reject);
        resolve(new HttpConnection(socket));
      });
    });
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** Sends a request and resolves with its answer; rejects when the connection breaks first. */
  send(head: string, body: Buffer): Promise<HttpAnswer> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    this.#answer = Promise.withResolvers();
    this.#socket.cork();
    this.#socket.write(head, "latin1");
    this.#socket.write(body);
    this.#socket.uncork();
    return this.#answer.promise;
  }

  close(): void {
    this.#closed ??= new Error("the connection is closed");
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd === -1) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const status = Number(head.slice(9, 12));
    const read = bodyOf(this.#received.subarray(headEnd + HEAD_END.length), head, status);
    if (read === undefined) return;
    const body = read.bytes.toString("utf8");
    this.#received = read.rest;
    if (/\r\nconnection: close/i.test(head)) this.close();
    const answer = this.#answer;
    this.#answer = undefined;
    answer?.resolve({ status, body });
  }

  #onClose(error: Error): void {
    this.#closed ??= error;
    this.#answer?.reject(error);
    this.#answer = undefined;
  }
}

/** The body at the start of what was received, and what follows it; undefined while it is not all there. */
function bodyOf(received: Buffer, head: string, status: number): { bytes: Buffer; rest: Buffer } | undefined {
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) return chunkedBody(received);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length === undefined && status !== 204) throw new Error(`this client cannot read such an answer:\n${head}`);
  const end = Number(length ?? 0);
  return received.length < end ? undefined : { bytes: received.subarray(0, end), rest: received.subarray(end) };
}

const LINE_END = "\r\n";

/** Chunks with neither extensions nor trailers. */
function chunkedBody(received: Buffer): { bytes: Buffer; rest: Buffer } | undefined {
  const chunks: Buffer[] = [];
  for (let at = 0; ;) {
    const lineEnd = received.indexOf(LINE_END, at);
    if (lineEnd === -1) return undefined;
    const sizeBytes = Number.parseInt(received.toString("latin1", at, lineEnd), 16);
    const start = lineEnd + LINE_END.length;
    at = start + sizeBytes + LINE_END.length;
    if (received.length < at) return undefined;
    if (sizeBytes === 0) return { bytes: Buffer.concat(chunks), rest: received.subarray(at) };
    chunks.push(received.subarray(start, start + sizeBytes));
  }
}

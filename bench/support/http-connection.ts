import { connect, type Socket } from "node:net";

/** An answer; `body` is text. */
export type HttpAnswer = { status: number; body: string };

const HEAD_END = Buffer.from("\r\n\r\n");

/**
 * The leanest client of HTTP/1.1: one connection, one request at a time, answers with a Content-Length. A load generator
 * that shares its machine with the server it measures must cost next to nothing.
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

  static open(host: string, port: number): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port });
      socket.once("error", reject);
      socket.once("connect", () => {
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
    const bodyStart = headEnd + HEAD_END.length;
    const bodyEnd = bodyStart + contentLength(head, status);
    if (this.#received.length < bodyEnd) return;
    const body = this.#received.toString("utf8", bodyStart, bodyEnd);
    this.#received = this.#received.subarray(bodyEnd);
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

function contentLength(head: string, status: number): number {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) return Number(length);
  if (status === 204) return 0;
  throw new Error(`this client reads only answers with a Content-Length:\n${head}`);
}

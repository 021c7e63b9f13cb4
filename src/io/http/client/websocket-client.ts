import type { ClientRequest, IncomingMessage } from "node:http";
import { connect, isIP, type LookupFunction, type TcpNetConnectOpts } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { WebSocket } from "ws";
import type { Clock } from "../../../core/clock.ts";
import { MAX_MESSAGE_BYTES, type WebSocketConnection, type WebSocketLimits } from "../websocket.ts";
import { connectionOf } from "../websocket-ws.ts";

export type WebSocketDial = {
  /** `http:` or `https:`. */
  origin: string;
  /** Where the server is reached; a connection to the origin is opened unless given. */
  over?: Duplex;
  /** With the query string; sent as it is. Characters stand for bytes (Latin-1). */
  path: string;
  headers: Readonly<Record<string, string>>;
  /** Offered; where there are some the server must take one. */
  protocols: readonly string[];
  limits?: Partial<WebSocketLimits>;
  connectTimeoutMs: number;
  /** Most time until the answer. Without limit unless given. */
  answerTimeoutMs?: number;
  /**
   * Sends bytes as they are, with a mask of zeros, which saves most of the work. The mask is there so that nobody who
   * chooses what is sent can make a proxy on the way take it for a request (RFC 6455 §10.3): for a way that no proxy
   * reads, as over TLS.
   */
  isUnmasked?: boolean;
  /** Gives up before there is an answer. An open connection is not affected. */
  signal: AbortSignal;
  clock: Clock;
  lookup?: LookupFunction;
};

/** What became of it. */
export type WebSocketDialled =
  | { kind: "open"; connection: WebSocketConnection; headers: readonly string[] }
  /** Another answer; of its body at most `REFUSAL_BYTES`. Headers: name, value, name, value… */
  | { kind: "refused"; status: number; headers: readonly string[]; body: Uint8Array }
  /** There was no connection, so nothing was sent. */
  | { kind: "unreachable"; error: Error }
  /** The connection broke before the answer, or the answer is none. */
  | { kind: "broken"; error: Error };

const REFUSAL_BYTES = 256 * 1024;

/** Asks a server for a WebSocket. Rejects with the reason of the signal, and with a `SyntaxError` for what cannot be sent. */
export async function dialWebSocket(dial: WebSocketDial): Promise<WebSocketDialled> {
  dial.signal.throwIfAborted();
  const outcome = Promise.withResolvers<WebSocketDialled>();
  const way = new Way(dial);
  const socket = new WebSocket(dial.origin.replace(/^http/, "ws"), [...dial.protocols], {
    headers: { ...dial.headers },
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
    ...(dial.isUnmasked === true ? { generateMask: (mask: Buffer) => void mask.fill(0) } : {}),
    createConnection: (options: TcpNetConnectOpts) => way.open(options),
    finishRequest: (request: ClientRequest) => {
      request.path = dial.path;
      request.end();
    },
  } as ConstructorParameters<typeof WebSocket>[2]);
  const giveUp = (): void => {
    outcome.reject(dial.signal.reason as Error);
    socket.terminate();
  };
  let headers: readonly string[] = [];
  socket.once("upgrade", (answer) => (headers = answer.rawHeaders));
  socket.once("open", () => outcome.resolve({ kind: "open", connection: connectionOf(socket, dial), headers }));
  socket.once("unexpected-response", (_request, answer) => {
    collect(answer).then(
      (body) => {
        outcome.resolve({ kind: "refused", status: answer.statusCode ?? 0, headers: answer.rawHeaders, body });
        socket.terminate();
      },
      (error: Error) => outcome.resolve({ kind: "broken", error }),
    );
  });
  // Also what ends it later, which `close` reports too.
  socket.on("error", (error) =>
    outcome.resolve({ kind: way.isConnected ? "broken" : "unreachable", error: way.failure ?? error }),
  );
  dial.signal.addEventListener("abort", giveUp, { once: true });
  try {
    return await outcome.promise;
  } finally {
    dial.signal.removeEventListener("abort", giveUp);
    way.arrived();
  }
}

/** The connection to the server, and the time that it takes. */
class Way {
  isConnected = false;
  /** Why it was given up. */
  failure: Error | undefined;
  readonly #dial: WebSocketDial;
  #timer: { cancel(): void } | undefined;

  constructor(dial: WebSocketDial) {
    this.#dial = dial;
  }

  open(options: TcpNetConnectOpts): Duplex {
    const { origin, over, lookup, connectTimeoutMs } = this.#dial;
    if (over !== undefined) {
      this.#connected(over);
      return over;
    }
    const isSecure = origin.startsWith("https:");
    const { host = "", port } = options;
    const target = { host, port, ...(lookup === undefined ? {} : { lookup }) };
    const socket = isSecure ? connectTls({ ...target, servername: isIP(host) === 0 ? host : "" }) : connect(target);
    socket.setNoDelay(true);
    this.#expect(socket, connectTimeoutMs, "the server could not be reached in time");
    socket.once(isSecure ? "secureConnect" : "connect", () => this.#connected(socket));
    return socket;
  }

  /** What was waited for has come. */
  arrived(): void {
    this.#timer?.cancel();
  }

  #connected(socket: Duplex): void {
    const { answerTimeoutMs } = this.#dial;
    this.isConnected = true;
    this.arrived();
    if (answerTimeoutMs !== undefined) this.#expect(socket, answerTimeoutMs, "the server did not answer in time");
  }

  #expect(socket: Duplex, timeoutMs: number, otherwise: string): void {
    this.#timer = this.#dial.clock.after(timeoutMs, () => {
      this.failure = new Error(otherwise);
      socket.destroy(this.failure);
    });
  }
}

async function collect(answer: IncomingMessage): Promise<Uint8Array> {
  const pieces: Buffer[] = [];
  let missingBytes = REFUSAL_BYTES;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    pieces.push(piece.subarray(0, missingBytes));
    missingBytes -= piece.length;
    if (missingBytes <= 0) break;
  }
  return Buffer.concat(pieces);
}

/**
 * WebSockets (RFC 6455), as the rest of the program sees them: on the server as the answer to a GET, on the client as what
 * `client/websocket-client.ts` opens. Messages are text (a string) or bytes.
 *
 * Both directions have back-pressure. `send` resolves when there is room for more. What is received waits until
 * `messages()` takes it, and while much of it waits the connection is not read. The library of the `uws` driver cannot
 * be told to stop reading: there a client that sends more than `maxWaitingBytes` ahead of its reader is cut off (1008).
 * So a protocol in which one side may send much has windows of its own.
 *
 * A side that hears nothing for `deadAfterMs`, though it sends pings, takes the other for dead. Messages are not
 * compressed.
 */
export interface WebSocketConnection {
  /** The subprotocol that was agreed upon; empty when none was. */
  readonly protocol: string;
  /** Aborted, with a `WebSocketClosedError`, as soon as the connection is closed or closes, from whichever side. */
  readonly signal: AbortSignal;
  /** How it ended; never rejects. */
  readonly closed: Promise<WebSocketClosing>;
  /** What was sent and the kernel has not taken yet. */
  readonly bufferedBytes: number;
  /**
   * Resolves when there is room for another message: at once, mostly. Rejects with a `WebSocketClosedError` when the
   * connection is closed or closes. The bytes must not be changed after.
   */
  send(message: WebSocketMessage): Promise<void>;
  /**
   * What comes, in order, for one reader. Ends when the other side has closed, or this one has; fails with a
   * `WebSocketClosedError` when the connection broke, so that a part is never taken for the whole. A reader that leaves
   * early closes the connection.
   */
  messages(): AsyncIterableIterator<WebSocketMessage>;
  /**
   * Sends what was sent before, then says good-bye, and waits a moment for the other side to do the same. The reason is
   * cut to 123 bytes. Without effect on a connection that closes already.
   */
  close(code?: number, reason?: string): void;
  /** Breaks the connection at once. */
  terminate(): void;
}

export type WebSocketMessage = string | Uint8Array;

/** `code` is 1005 where the other side named none, and 1006 where the connection broke without a good-bye. */
export type WebSocketClosing = { code: number; reason: string };

export const WEBSOCKET_CLOSE = {
  normal: 1000,
  goingAway: 1001,
  noCode: 1005,
  broken: 1006,
  refused: 1008,
  tooBig: 1009,
  internal: 1011,
  tryAgainLater: 1013,
} as const;

export type WebSocketLimits = {
  /** Of a message that is received: a larger one closes the connection (1009). At most `MAX_MESSAGE_BYTES`. */
  maxMessageBytes: number;
  /** What is received ahead of its reader. */
  maxWaitingBytes: number;
  pingEveryMs: number;
  deadAfterMs: number;
};

export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

export const WEBSOCKET_LIMITS: WebSocketLimits = {
  maxMessageBytes: 1024 * 1024,
  maxWaitingBytes: 4 * 1024 * 1024,
  pingEveryMs: 15_000,
  deadAfterMs: 45_000,
};

/** What a client asks for. */
export type WebSocketOffer = { protocols: readonly string[] };

/** How a handler answers such a request: see `HttpResponse`. */
export type WebSocketAnswer = {
  /** One of those that the client offers; none unless given. */
  protocol?: string;
  limits?: Partial<WebSocketLimits>;
  /**
   * Called when the connection is open; never if the client leaves before, and the request's `signal` is aborted. The
   * connection is closed when the promise settles: with 1000, or 1011 if it rejects. The
   * request counts as being answered until then.
   */
  run: (connection: WebSocketConnection) => Promise<void>;
};

/** The connection is closed, or closes. */
export class WebSocketClosedError extends Error {
  readonly closing: WebSocketClosing;

  constructor(closing: WebSocketClosing) {
    const { code, reason } = closing;
    super(
      code === WEBSOCKET_CLOSE.broken
        ? "the WebSocket connection broke"
        : `the WebSocket was closed (${code}${reason === "" ? "" : `: ${reason}`})`,
    );
    this.name = "WebSocketClosedError";
    this.closing = closing;
  }
}

/** Base64 of 16 bytes. */
const KEY = /^[A-Za-z0-9+/]{21}[AQgw]==$/;
const VERSION = "13";
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The offer of a request, undefined where it is no well-formed one for this version of the protocol. */
export function webSocketOffer(
  method: string,
  header: (name: string) => string | undefined,
): WebSocketOffer | undefined {
  if (method !== "GET" || header("upgrade")?.toLowerCase() !== "websocket") return undefined;
  if (!listOf(header("connection")).some((token) => token.toLowerCase() === "upgrade")) return undefined;
  if (header("sec-websocket-version") !== VERSION || !KEY.test(header("sec-websocket-key") ?? "")) return undefined;
  const protocols = listOf(header("sec-websocket-protocol"));
  const areNames = protocols.every((name) => TOKEN.test(name)) && new Set(protocols).size === protocols.length;
  return areNames ? { protocols } : undefined;
}

function listOf(value: string | undefined): string[] {
  return value === undefined ? [] : value.split(",").map((item) => item.trim());
}

import type { TlsPair } from "../http/tls.ts";

/**
 * gRPC over HTTP/2, as the rest of the program sees it. `server.ts` serves this port by @grpc/grpc-js; the methods of a
 * service are a plain table, so the same table can be answered over gRPC-web (`src/server/grpc/`).
 *
 * Messages are the bytes of protobuf messages: nothing here knows their fields, and no code is generated. A call has one
 * request message; its answer is one message, or a stream of them. Calls that no table has are answered `UNIMPLEMENTED`.
 *
 * What the driver sees to, whatever a method does:
 * - `call.signal` is aborted when the client cancels or leaves, and when the deadline of the call has passed, also while
 *   the client takes nothing of the answer.
 * - Messages of a stream are taken from the iterator no faster than the client takes them, and `return()` is called when
 *   the call ends early. A client that takes nothing for `STALL_TIMEOUT_MS` has its call ended.
 * - A message that a client does not take `UNSENT_TIMEOUT_MS` after its call is over costs it the connection, and so does a
 *   request that is not whole in time (`receiveTimeoutMs`): both would be held for as long as it likes.
 * - Messages may be packed with gzip or deflate. The driver knows no others and cannot be taught one: a message packed with
 *   zstd is `UNIMPLEMENTED`, with the codings there are in `grpc-accept-encoding`, as the protocol asks.
 * - A message above `maxReceiveBytes` (decoded bytes count) is refused with `RESOURCE_EXHAUSTED`.
 * - What a method rejects with, or its messages fail with, becomes the status of the call (`failureOf` in `status.ts`).
 * - A connection that does not answer pings for a minute and a half is closed.
 */
export interface GrpcServer {
  /** Binds and starts to accept. Rejects with a system error (`EADDRINUSE`, `EACCES`) when it can't. */
  listen(address: { host: string; port: number }): Promise<{ host: string; port: number }>;
  /** Stops accepting, tells clients to go, and resolves when every call is answered or `timeoutMs` passed. */
  drain(timeoutMs: number): Promise<void>;
  /** Ends every call and connection at once. */
  close(): Promise<void>;
  /** Of a server with TLS: connections that are opened from here on get that certificate. Throws for one of no use. */
  useTlsPair(pair: TlsPair): void;
}

/** A call that a client makes. */
export type GrpcCall = {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Metadata by its lower-case name; repeated values are joined by `, `, those of `-bin` keys are base64. */
  header(name: string): string | undefined;
  /** The lower-case names of all metadata, each once. */
  headerNames(): readonly string[];
  /** In text; empty when it is not known. */
  readonly remoteAddress: string;
  /** Aborted with a `CallEndedError`. */
  readonly signal: AbortSignal;
};

/** What is known of a call before its message. */
export type GrpcCallHead = Pick<GrpcCall, "path" | "header" | "remoteAddress">;

export type GrpcReply = {
  /** Initial metadata: lower-case names, ASCII values. */
  metadata?: Readonly<Record<string, string>>;
  /** One message of a method that answers with one, else any number. The bytes must not be changed afterwards. */
  messages: Uint8Array | AsyncIterable<Uint8Array>;
};

/** How a method answers a call with that request message. */
export type GrpcHandler = (call: GrpcCall, message: Uint8Array) => Promise<GrpcReply>;

export type GrpcMethod = {
  /** Whether the answer is a stream of messages, by the protocol's definition of the method. */
  streams: boolean;
  handle: GrpcHandler;
};

export type GrpcService = {
  /** With its package: `arrow.flight.protocol.FlightService`. */
  name: string;
  /** Rejects for a call of which no byte is to be read: a message may be large, and is held until it is whole. */
  admit?: (head: GrpcCallHead) => Promise<void>;
  methods: Readonly<Record<string, GrpcMethod>>;
};

/** The call is over before its answer was complete. */
export class CallEndedError extends Error {
  readonly reason: "cancelled" | "deadline" | "stalled";
  constructor(reason: CallEndedError["reason"]) {
    super(`the call is over: ${reason}`);
    this.name = "CallEndedError";
    this.reason = reason;
  }
}

/** How long a client may take nothing of an answer. */
export const STALL_TIMEOUT_MS = 600_000;

/** How long a message of a call that is over may wait for the client to take it. */
export const UNSENT_TIMEOUT_MS = 30_000;

/** How long a client may take to send a message: half a minute, and the time it takes at 100 kB/s. */
export function receiveTimeoutMs(maxReceiveBytes: number): number {
  return 30_000 + maxReceiveBytes / 100;
}

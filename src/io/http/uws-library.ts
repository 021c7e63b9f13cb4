import { createRequire } from "node:module";
import { messageOf } from "../../core/errors.ts";

/** The part of uWebSockets.js (20.51 and later) that this driver uses. */
export interface UwsLibrary {
  App(): UwsApp;
  /** Reads the files; throws "App construction failed", whatever the reason. At least TLS 1.2. */
  SSLApp(options: { cert_file_name: string; key_file_name: string; ssl_ciphers: string }): UwsApp;
  us_listen_socket_close(socket: UwsListenSocket): void;
  us_socket_local_port(socket: UwsListenSocket): number;
  /** `silent` leaves out the `uWebSockets` response header. */
  _cfg(key: "silent"): void;
  LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}

export type UwsListenSocket = { readonly nativeListenSocket: unique symbol };

export type UwsAppDescriptor = { readonly nativeApp: unique symbol };

export interface UwsApp {
  any(pattern: string, handler: (response: UwsResponse, request: UwsRequest) => void): UwsApp;
  /** GETs with a `Sec-WebSocket-Key` go here, before `any`. */
  ws(pattern: string, behavior: UwsWebSocketBehavior): UwsApp;
  listen(host: string, port: number, options: number, callback: (socket: UwsListenSocket | false) => void): UwsApp;
  /** Closes the listening socket and every connection at once. */
  close(): UwsApp;
  /**
   * What this app accepts from here on is handed to the other one, which must be of the same kind; to each in turn when
   * there are several.
   */
  addChildAppDescriptor(app: UwsAppDescriptor): UwsApp;
  removeChildAppDescriptor(app: UwsAppDescriptor): UwsApp;
  getDescriptor(): UwsAppDescriptor;
}

export type UwsUpgradeContext = { readonly nativeContext: unique symbol };

/** `channel` is whatever `upgrade` was given as such. */
export interface UwsWebSocket {
  readonly channel: unknown;
  /** What the kernel does not take is kept. */
  send(message: string | Uint8Array, isBinary: boolean, compress: boolean): number;
  ping(): number;
  /** What is written in the task is sent at its end, together. */
  cork(task: () => void): void;
  /** Sends a close frame. Calls `close` of the behaviour at once, after which no method may be called. */
  end(code: number, reason: string): void;
  /** Breaks the connection; the same. */
  close(): void;
  getBufferedAmount(): number;
}

export interface UwsWebSocketBehavior {
  /** A larger message breaks the connection. */
  maxPayloadLength: number;
  /** 0: none. */
  idleTimeout: number;
  /** 0: no limit. */
  maxBackpressure: number;
  sendPingsAutomatically: boolean;
  upgrade: (response: UwsResponse, request: UwsRequest, context: UwsUpgradeContext) => void;
  open: (socket: UwsWebSocket) => void;
  /** The message is detached when the handler returns. */
  message: (socket: UwsWebSocket, message: ArrayBuffer, isBinary: boolean) => void;
  ping: (socket: UwsWebSocket) => void;
  pong: (socket: UwsWebSocket) => void;
  /** More was taken of what is kept. */
  drain: (socket: UwsWebSocket) => void;
  /** 1006 for one that broke, with words of the library. */
  close: (socket: UwsWebSocket, code: number, reason: ArrayBuffer) => void;
}

/** Valid only until the route handler returns. */
export interface UwsRequest {
  getCaseSensitiveMethod(): string;
  getUrl(): string;
  getQuery(): string | undefined;
  forEach(callback: (name: string, value: string) => void): void;
}

/** Valid until it was ended, closed or aborted; a call after that throws. */
export interface UwsResponse {
  writeStatus(status: string): UwsResponse;
  writeHeader(name: string, value: string | Uint8Array): UwsResponse;
  /** One chunk; false when not all of it could be handed to the kernel (the rest is kept and sent later). */
  write(chunk: Uint8Array): boolean;
  end(body?: string | Uint8Array, closeConnection?: boolean): UwsResponse;
  /** Not with a length: 20.51 then takes the response for unfinished. */
  endWithoutBody(): UwsResponse;
  /** Writes what the kernel takes and keeps nothing. Returns [all of it taken, response complete]. */
  tryEnd(rest: Uint8Array, totalBytes: number): [boolean, boolean];
  close(): UwsResponse;
  onWritable(handler: (offsetBytes: number) => boolean): UwsResponse;
  onAborted(handler: () => void): UwsResponse;
  /** The piece is detached when the handler returns. */
  onData(handler: (piece: ArrayBuffer, last: boolean) => void): UwsResponse;
  pause(): UwsResponse;
  resume(): UwsResponse;
  cork(task: () => void): UwsResponse;
  /** Calls `open` of the behaviour at once. After it the response is not valid. */
  upgrade(
    userData: { channel: unknown },
    key: string,
    protocol: string,
    extensions: string,
    context: UwsUpgradeContext,
  ): void;
  /** Bytes of the body that `tryEnd` has handed over. */
  getWriteOffset(): number;
  getRemoteAddress(): ArrayBuffer;
}

const HEADER_LIMIT_VARIABLE = "UWS_HTTP_MAX_HEADERS_SIZE";
const MIN_HEADER_LIMIT_BYTES = 64 * 1024;

let loaded: { library: UwsLibrary; headerLimitBytes: number } | undefined;

/**
 * Loads uWebSockets.js: the official package where somebody installed it (it is not on npm), else the binary for this
 * major version of Node. Throws an `Error` that says why neither loads.
 *
 * The library reads its limit of a request head from the environment, once, when it is loaded. It answers larger ones in
 * its own words; so it gets twice the limit, and the driver checks the real one and answers in ours.
 */
export function loadUws(maxHeaderBytes: number): UwsLibrary {
  if (loaded === undefined) {
    const headerLimitBytes = Math.max(MIN_HEADER_LIMIT_BYTES, 2 * maxHeaderBytes);
    loaded = { library: withEnvironment(HEADER_LIMIT_VARIABLE, String(headerLimitBytes), load), headerLimitBytes };
    loaded.library._cfg("silent");
  }
  if (maxHeaderBytes > loaded.headerLimitBytes) {
    throw new Error(`uWebSockets.js was loaded with a header limit of ${loaded.headerLimitBytes} bytes`);
  }
  return loaded.library;
}

function load(): UwsLibrary {
  const require = createRequire(import.meta.url);
  const major = process.versions.node.split(".")[0];
  const reasons: string[] = [];
  for (const name of ["uWebSockets.js", `@uwsjs/${process.platform}-${process.arch}-${major}`]) {
    try {
      return require(name) as UwsLibrary;
    } catch (error) {
      reasons.push(`${name}: ${messageOf(error).split("\n")[0]}`);
    }
  }
  throw new Error(reasons.join("; "));
}

/** Child processes should not inherit the variable, so it is set for the call only. */
function withEnvironment<T>(name: string, value: string, task: () => T): T {
  const before = process.env[name];
  process.env[name] = value;
  try {
    return task();
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
}

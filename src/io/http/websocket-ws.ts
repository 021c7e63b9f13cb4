import type { RawData, WebSocket } from "ws";
import type { Clock } from "../../core/clock.ts";
import { OpenWebSocket, type WebSocketWire } from "./websocket-connection.ts";
import type { WebSocketConnection, WebSocketLimits, WebSocketMessage } from "./websocket.ts";

/** A connection of the package `ws`, of a server or a client. It must be open. */
export function connectionOf(
  socket: WebSocket,
  options: { clock: Clock; limits?: Partial<WebSocketLimits> },
): WebSocketConnection {
  const wire = new WsWire(socket, () => connection.drained());
  const connection: OpenWebSocket = new OpenWebSocket(wire, socket.protocol, options);
  socket.on("message", (data, isBinary) => {
    const bytes = bytesOf(data);
    connection.received(isBinary ? bytes : bytes.toString());
  });
  socket.on("ping", () => connection.heard());
  socket.on("pong", () => connection.heard());
  // What it reports ends the connection, which `close` reports too.
  socket.on("error", () => undefined);
  socket.on("close", (code, reason) => connection.ended(code, reason.toString()));
  return connection;
}

class WsWire implements WebSocketWire {
  readonly #socket: WebSocket;
  readonly #onSent: () => void;

  constructor(socket: WebSocket, onSent: () => void) {
    this.#socket = socket;
    this.#onSent = onSent;
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  send(message: WebSocketMessage): void {
    this.#socket.send(message, { binary: typeof message !== "string", compress: false }, this.#onSent);
  }

  ping(): void {
    this.#socket.ping();
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  terminate(): void {
    this.#socket.terminate();
  }

  pause(): boolean {
    this.#socket.pause();
    return true;
  }

  resume(): void {
    this.#socket.resume();
  }
}

function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

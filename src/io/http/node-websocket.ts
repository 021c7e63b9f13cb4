import type { IncomingMessage } from "node:http";
import { WebSocketServer } from "ws";
import type { Clock } from "../../core/clock.ts";
import { MAX_MESSAGE_BYTES, WEBSOCKET_LIMITS, type WebSocketAnswer, type WebSocketConnection } from "./websocket.ts";
import { connectionOf } from "./websocket-ws.ts";

type Acceptance = {
  /** Of the answer: name, value, name, value… */
  headers: readonly string[];
  answer: WebSocketAnswer;
  clock: Clock;
};

/** Answers a request with a WebSocket; undefined when its client has gone. `behindHead` is what was read after it. */
export function acceptWebSocket(
  message: IncomingMessage,
  behindHead: Buffer,
  { headers, answer: { protocol, limits = {} }, clock }: Acceptance,
): WebSocketConnection | undefined {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: Math.min(MAX_MESSAGE_BYTES, limits.maxMessageBytes ?? WEBSOCKET_LIMITS.maxMessageBytes),
    handleProtocols: () => protocol ?? false,
  });
  server.once("headers", (lines: string[]) => {
    for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  });
  let connection: WebSocketConnection | undefined;
  // It calls back before it returns, or not at all.
  server.handleUpgrade(message, message.socket, behindHead, (socket) => {
    connection = connectionOf(socket, { clock, limits });
  });
  return connection;
}

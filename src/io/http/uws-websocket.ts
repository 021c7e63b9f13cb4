import type { Clock } from "../../core/clock.ts";
import type { UwsResponse, UwsUpgradeContext, UwsWebSocket, UwsWebSocketBehavior } from "./uws-library.ts";
import { OpenWebSocket, type WebSocketWire } from "./websocket-connection.ts";
import {
  MAX_MESSAGE_BYTES,
  type WebSocketAnswer,
  type WebSocketConnection,
  type WebSocketMessage,
} from "./websocket.ts";

type Acceptance = {
  /** `Sec-WebSocket-Key` of the request. */
  key: string;
  context: UwsUpgradeContext | undefined;
  /** Of the answer: name, value, name, value… */
  headers: readonly string[];
  answer: WebSocketAnswer;
  clock: Clock;
};

/** Answers a request with a WebSocket. The library's response must not be called after it. */
export function upgrade(native: UwsResponse, acceptance: Acceptance): WebSocketConnection {
  const { key, context, headers, answer, clock } = acceptance;
  if (context === undefined) throw new TypeError("a request that cannot be upgraded");
  const protocol = answer.protocol ?? "";
  const channel = new Channel();
  native.cork(() => {
    native.writeStatus("101 Switching Protocols");
    for (let i = 0; i + 1 < headers.length; i += 2) native.writeHeader(headers[i] ?? "", headers[i + 1] ?? "");
  });
  uncorked(native, () => native.upgrade({ channel }, key, protocol, "", context));
  const { limits } = answer;
  const connection = new OpenWebSocket(channel, protocol, limits === undefined ? { clock } : { clock, limits });
  channel.connection = connection;
  return connection;
}

/** Those of this process that are open. */
const OPEN = new Set<UwsWebSocket>();

/**
 * Upgrades a response, which must not be done in its `cork`: that goes on to look at the response when its task is done.
 * By then there may be a WebSocket in its very place, and what it takes for the flag to close the connection may be set.
 *
 * While something else is corked, `cork` only calls its task. So it is called in the cork of any other WebSocket. Where
 * there is none the upgrade is done outside of a cork, and the library warns of that, without need, on stderr.
 */
function uncorked(native: UwsResponse, upgrade: () => void): void {
  const [other] = OPEN;
  if (other === undefined) upgrade();
  else other.cork(() => native.cork(upgrade));
}

/** The library's side of a connection: what it tells goes to the connection, which nothing can precede. */
class Channel implements WebSocketWire {
  socket: UwsWebSocket | undefined;
  connection: OpenWebSocket | undefined;

  get bufferedBytes(): number {
    return this.socket?.getBufferedAmount() ?? 0;
  }

  send(message: WebSocketMessage): void {
    this.socket?.send(message, typeof message !== "string", false);
  }

  ping(): void {
    this.socket?.ping();
  }

  close(code: number, reason: string): void {
    this.socket?.end(code, reason);
  }

  terminate(): void {
    this.socket?.close();
  }

  pause(): boolean {
    return false;
  }

  resume(): void {}
}

function channelOf({ channel }: UwsWebSocket): Channel {
  if (!(channel instanceof Channel)) throw new TypeError("a WebSocket that this server did not accept");
  return channel;
}

/** How the library is to treat all WebSockets; times and smaller limits are the connection's own. */
export const UWS_WEBSOCKETS: Omit<UwsWebSocketBehavior, "upgrade"> = {
  maxPayloadLength: MAX_MESSAGE_BYTES,
  idleTimeout: 0,
  maxBackpressure: 0,
  sendPingsAutomatically: false,
  open: (socket) => {
    channelOf(socket).socket = socket;
    OPEN.add(socket);
  },
  message: (socket, message, isBinary) => {
    const copy = Buffer.from(new Uint8Array(message));
    channelOf(socket).connection?.received(isBinary ? copy : copy.toString());
  },
  ping: (socket) => channelOf(socket).connection?.heard(),
  pong: (socket) => channelOf(socket).connection?.heard(),
  drain: (socket) => channelOf(socket).connection?.drained(),
  close: (socket, code, reason) => {
    const channel = channelOf(socket);
    channel.socket = undefined;
    OPEN.delete(socket);
    // Words of the library's own would say nothing that the code doesn't.
    const words = code === 1006 ? "" : Buffer.from(new Uint8Array(reason)).toString();
    channel.connection?.ended(code, words);
  },
};

import { WEBSOCKET_CLOSE, WebSocketClosedError, type WebSocketConnection } from "../websocket.ts";
import type { Passed } from "./exchange.ts";

/**
 * Carries messages between a client and a peer, no faster than the other side takes them, until one of them closes; the
 * other is closed with the same words.
 * @returns bytes of messages, when both are closed
 */
export async function relay(client: WebSocketConnection, peer: WebSocketConnection): Promise<Passed> {
  const [outBytes, inBytes] = await Promise.all([carry(client, peer), carry(peer, client)]);
  return { outBytes, inBytes };
}

async function carry(from: WebSocketConnection, to: WebSocketConnection): Promise<number> {
  let carriedBytes = 0;
  try {
    for await (const message of from.messages()) {
      await to.send(message);
      carriedBytes += message.length;
    }
  } catch (error) {
    if (!(error instanceof WebSocketClosedError)) throw error;
  }
  const { code, reason } = await from.closed;
  // These two are never sent.
  if (code === WEBSOCKET_CLOSE.broken) to.terminate();
  else if (code === WEBSOCKET_CLOSE.noCode) to.close();
  else to.close(code, reason);
  await to.closed;
  return carriedBytes;
}

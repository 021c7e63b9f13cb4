import type { HttpRequest, HttpResponse } from "./http.ts";
import { WEBSOCKET_CLOSE, WebSocketClosedError, type WebSocketAnswer, type WebSocketConnection } from "./websocket.ts";

/** The WebSockets of one server. */
export class WebSockets {
  readonly #open = new Set<WebSocketConnection>();
  readonly #report: (error: unknown) => void;
  #isLeaving = false;

  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  /** Lets the handler use a connection that is open; resolves when it is done and the connection closed. */
  async serve(connection: WebSocketConnection, { run }: WebSocketAnswer): Promise<void> {
    this.#open.add(connection);
    if (this.#isLeaving) goAway(connection);
    try {
      await run(connection);
      connection.close();
    } catch (error) {
      // That the connection is closed is no failure of whoever used it.
      if (!(error instanceof WebSocketClosedError && connection.signal.aborted)) this.#report(error);
      connection.close(WEBSOCKET_CLOSE.internal, "internal error");
    }
    await connection.closed;
    this.#open.delete(connection);
  }

  /** Tells all, and those that come, that the server is about to stop. */
  leave(): void {
    this.#isLeaving = true;
    for (const connection of this.#open) goAway(connection);
  }

  terminate(): void {
    for (const connection of this.#open) connection.terminate();
  }
}

function goAway(connection: WebSocketConnection): void {
  connection.close(WEBSOCKET_CLOSE.goingAway, "the server is about to stop");
}

/** The WebSocket of an answer. Throws a `TypeError` where the request asks for none, or not for that protocol. */
export function webSocketOf(
  request: Pick<HttpRequest, "webSocket">,
  { status, webSocket }: HttpResponse,
): WebSocketAnswer | undefined {
  if (webSocket === undefined) return undefined;
  const { protocol } = webSocket;
  const isOffered = protocol === undefined || request.webSocket?.protocols.includes(protocol) === true;
  if (status !== 101 || request.webSocket === undefined || !isOffered) {
    throw new TypeError("an answer with a WebSocket that the request does not ask for");
  }
  return webSocket;
}

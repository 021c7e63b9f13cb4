import type { Duplex } from "node:stream";
import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import { dialWebSocket, type WebSocketDialled } from "../../../io/http/client/websocket-client.ts";
import { relay } from "../../../io/http/client/websocket-relay.ts";
import type { HttpRequest, HttpResponse } from "../../../io/http/http.ts";
import { MAX_MESSAGE_BYTES, type WebSocketLimits } from "../../../io/http/websocket.ts";
import { webSocketHeaders } from "../../../server/edge/forward-websocket.ts";
import { webSocketResponse } from "../../../server/route.ts";
import { portRequestHeaders, portResponseHeaders } from "./port-headers.ts";

/** How large messages may be is for the program to say, up to that. */
const OF_THE_CLIENT = { maxMessageBytes: MAX_MESSAGE_BYTES, maxWaitingBytes: 4 * MAX_MESSAGE_BYTES };
/** A program stands still while its sandbox is paused: it answers no ping then, and is not dead. */
const OF_THE_PROGRAM: Partial<WebSocketLimits> = {
  maxMessageBytes: MAX_MESSAGE_BYTES,
  deadAfterMs: Number.POSITIVE_INFINITY,
};

export type PortUpgrade = {
  /** To the program. */
  connection: Duplex;
  request: HttpRequest;
  address: { port: number; prefix: string };
  /** As the client wrote it, with the query. */
  path: string;
  /** Aborted when nobody waits for the program's answer any more. */
  signal: AbortSignal;
  clock: Clock;
  /** Called when both WebSockets are closed. */
  onEnd: () => void;
};

/**
 * Asks a program in a sandbox for a WebSocket, with the sub-protocols that the client offers, and carries messages both
 * ways, no faster than the other side takes them; who closes says why to the other. What the program answers instead is
 * the answer. Rejects with `unavailable` when the connection breaks, and with the reason of the signal.
 */
export async function upgradePort(upgrade: PortUpgrade): Promise<HttpResponse> {
  const { request, address, onEnd } = upgrade;
  const dialled = await dial(upgrade);
  if (dialled.kind === "refused") {
    onEnd();
    return { status: dialled.status, headers: portResponseHeaders(dialled.headers, address), body: dialled.body };
  }
  if (dialled.kind !== "open") {
    const message = `the connection to port ${address.port} broke: ${dialled.error.message}`;
    throw new EngineError("unavailable", message, { cause: dialled.error });
  }
  const { connection: program } = dialled;
  void program.closed.then(onEnd);
  // Who leaves before the answer never gets to run it.
  request.signal.addEventListener("abort", () => program.terminate(), { once: true });
  if (request.signal.aborted) program.terminate();
  return webSocketResponse({
    ...(program.protocol === "" ? {} : { protocol: program.protocol }),
    limits: OF_THE_CLIENT,
    run: async (client) => void (await relay(client, program)),
  });
}

function dial({ connection, request, address, path, signal, clock }: PortUpgrade): Promise<WebSocketDialled> {
  return dialWebSocket({
    origin: `http://localhost:${address.port}`,
    over: connection,
    path: Buffer.from(path, "utf8").toString("latin1"),
    headers: webSocketHeaders(portRequestHeaders(request, address).flat()),
    protocols: request.webSocket?.protocols ?? [],
    limits: OF_THE_PROGRAM,
    // It is open.
    connectTimeoutMs: 0,
    signal,
    clock,
  });
}

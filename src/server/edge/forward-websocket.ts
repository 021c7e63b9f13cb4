import type { Metrics } from "../../core/metrics.ts";
import type { Peers } from "../../io/http/client/peers.ts";
import { forwardWebSocket } from "../../io/http/client/websocket-forwarder.ts";
import { relay } from "../../io/http/client/websocket-relay.ts";
import type { HttpRequest, HttpResponse } from "../../io/http/http.ts";
import { MAX_MESSAGE_BYTES } from "../../io/http/websocket.ts";
import { webSocketResponse } from "../route.ts";
import { requestHeaders, responseHeaders } from "./forward-headers.ts";

type Upstream = { peers: Peers; upstream: string; metrics: Metrics; edgeId: string };

/** How large messages may be is for the peer to say. */
const LIMITS = { maxMessageBytes: MAX_MESSAGE_BYTES };

/** Has a peer answer a request for a WebSocket, and carries messages both ways. A refusal is passed on as it is. */
export async function forwardUpgrade(
  { peers, upstream, metrics, edgeId }: Upstream,
  { request, requestId, target }: { request: HttpRequest; requestId: string; target: string },
): Promise<HttpResponse> {
  const answer = await forwardWebSocket(
    peers,
    { upstream, metrics },
    {
      path: target,
      headers: webSocketHeaders(requestHeaders(request, requestId, edgeId)),
      protocols: request.webSocket?.protocols ?? [],
      limits: LIMITS,
      signal: request.signal,
    },
  );
  if (answer.kind === "refused") {
    return { status: answer.status, headers: responseHeaders(answer.headers), body: answer.body };
  }
  const { connection: peer } = answer;
  // Who leaves before the answer never gets to run it.
  request.signal.addEventListener("abort", () => peer.terminate(), { once: true });
  if (request.signal.aborted) peer.terminate();
  return webSocketResponse({
    ...(peer.protocol === "" ? {} : { protocol: peer.protocol }),
    limits: LIMITS,
    run: async (client) => {
      const { outBytes, inBytes } = await relay(client, peer);
      metrics.edgeBytes.inc({ upstream, direction: "out" }, outBytes);
      metrics.edgeBytes.inc({ upstream, direction: "in" }, inBytes);
    },
  });
}

/** Of name, value, name, value…: without those of the WebSocket, which each side of an intermediary makes. */
export function webSocketHeaders(pairs: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const name = pairs[i] ?? "";
    if (!name.startsWith("sec-websocket-")) headers[name] = pairs[i + 1] ?? "";
  }
  return headers;
}

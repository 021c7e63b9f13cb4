import { brokenPeer, isDraining, MAX_TRIES, noPeer } from "./forwarder.ts";
import type { Peer, PeerDial, PeerPorts } from "./peer.ts";
import type { Peers } from "./peers.ts";
import type { WebSocketDialled } from "./websocket-client.ts";

/** What a peer answered. */
export type WebSocketForwarded = Extract<WebSocketDialled, { kind: "open" | "refused" }>;

/**
 * Has one of the peers open a WebSocket, or refuse to. Another one is tried when there was no connection, and when the
 * peer is draining. Rejects with `unavailable` when no peer answers, and with the reason of the signal.
 */
export async function forwardWebSocket(
  peers: Peers,
  { upstream, metrics }: Pick<PeerPorts, "upstream" | "metrics">,
  request: PeerDial,
): Promise<WebSocketForwarded> {
  const tried = new Set<Peer>();
  for (let peer = peers.pick(tried); peer !== undefined;) {
    tried.add(peer);
    const dialled = await peer.dial(request);
    if (dialled.kind === "open") return dialled;
    if (dialled.kind === "broken") throw brokenPeer(upstream, dialled.error);
    if (dialled.kind === "refused") {
      if (!isDraining(dialled)) return dialled;
      peer.drains();
    }
    peer = tried.size < MAX_TRIES ? peers.pick(tried) : undefined;
    if (peer === undefined && dialled.kind === "refused") return dialled;
    const after = dialled.kind === "refused" ? "draining" : "unreachable";
    if (peer !== undefined) metrics.edgeRetries.inc({ upstream, after });
  }
  metrics.edgeNoPeer.inc({ upstream });
  throw noPeer(upstream);
}

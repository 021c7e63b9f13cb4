import { createForwardCall } from "../src/server/edge/forward-call.ts";
import { newEdgeId } from "../src/server/edge/forward-headers.ts";
import type { ForwardCall } from "../src/server/route.ts";
import type { Service } from "../src/core/lifecycle.ts";
import { PEER_TIMES } from "../src/io/http/client/peer.ts";
import { Peers, systemLookup } from "../src/io/http/client/peers.ts";
import { ReplayBudget } from "../src/io/http/client/replayable-body.ts";
import type { Parts } from "./parts.ts";
import type { Plan } from "./plan.ts";

/** Memory for bodies that may have to be sent a second time. */
const REPLAY_BYTES = 64 * 1024 * 1024;

/** What the role `edge` is made of: a way to the peers of each group of routes that is not answered here. */
export type Edge = { query?: ForwardCall; ingest?: ForwardCall; services: readonly Service[] };

export function createEdge(parts: Parts, plan: Plan): Edge {
  const budget = new ReplayBudget(REPLAY_BYTES);
  const edgeId = newEdgeId(parts.newId);
  const services: Service[] = [];
  const forwardTo = (upstream: "query" | "ingest", urls: readonly string[] | undefined): ForwardCall | undefined => {
    if (plan[upstream] !== "peers" || urls === undefined) return undefined;
    const peers = new Peers({ ...parts, upstream, urls, lookup: systemLookup, times: PEER_TIMES });
    services.push(peerService(upstream, peers));
    return createForwardCall({ peers, upstream, metrics: parts.metrics, budget, edgeId });
  };
  const query = forwardTo("query", parts.config.queryPeers);
  const ingest = forwardTo("ingest", parts.config.ingestPeers);
  return { ...(query === undefined ? {} : { query }), ...(ingest === undefined ? {} : { ingest }), services };
}

function peerService(upstream: string, peers: Peers): Service {
  return {
    name: `${upstream} peers`,
    run: () => peers.start(),
    // The HTTP server, which drains first, waits for what they are answering.
    drain: async () => {},
    stop: () => peers.stop(),
  };
}

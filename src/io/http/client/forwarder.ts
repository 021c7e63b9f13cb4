import { EngineError, messageOf } from "../../../core/errors.ts";
import { DRAINING_HEADER } from "./draining.ts";
import type { Answer, Outgoing, Try } from "./exchange.ts";
import type { Peer, PeerPorts } from "./peer.ts";
import type { Peers } from "./peers.ts";

/** Most peers that one request is sent to. */
export const MAX_TRIES = 5;
const RETRY_AFTER_SECS = "1";

export type ForwardRequest = Outgoing & {
  /** Whether doing it twice does no harm: then it may be sent again though a peer may have begun with it. */
  idempotent: boolean;
};

/**
 * Has one of the peers answer. Another one is tried
 * - when there was no connection: nothing was sent;
 * - when the peer is draining and says that it did nothing;
 * - when the connection broke before the answer, if the request is idempotent;
 * the last two only while all that was sent of the body is kept. Anything else a peer answers is the answer.
 *
 * Rejects with `unavailable` when no peer answers, with the reason of the signal, or with what kept the client's body
 * from being read.
 */
export async function forward(peers: Peers, ports: ForwardPorts, request: ForwardRequest): Promise<Answer> {
  try {
    return await tryPeers(peers, ports, request);
  } finally {
    request.body?.settle();
  }
}

type ForwardPorts = Pick<PeerPorts, "upstream" | "metrics">;

async function tryPeers(peers: Peers, { upstream, metrics }: ForwardPorts, request: ForwardRequest): Promise<Answer> {
  const tried = new Set<Peer>();
  for (let peer = peers.pick(tried); peer !== undefined;) {
    tried.add(peer);
    const result = await peer.send(request);
    const after = reasonToRetry(result, request);
    if (after === undefined) return finalAnswer(result, request, upstream);
    if (after === "draining") peer.drains();
    peer = tried.size < MAX_TRIES ? peers.pick(tried) : undefined;
    if (peer === undefined && after !== "unreachable") return finalAnswer(result, request, upstream);
    if (peer !== undefined) metrics.edgeRetries.inc({ upstream, after });
    if (result.kind === "answered") result.answer.body.cancel();
  }
  metrics.edgeNoPeer.inc({ upstream });
  throw noPeer(upstream);
}

export function noPeer(upstream: string): EngineError {
  return new EngineError("unavailable", `no peer for ${upstream} can take requests at the moment`, {
    headers: { "Retry-After": RETRY_AFTER_SECS },
  });
}

type RetryReason = "unreachable" | "draining" | "broken";

function reasonToRetry(result: Try, { body, idempotent }: ForwardRequest): RetryReason | undefined {
  if (result.kind === "unreachable") return "unreachable";
  const resendable = body === undefined || body.replayable;
  if (result.kind === "broken") return idempotent && resendable ? "broken" : undefined;
  return resendable && isDraining(result.answer) ? "draining" : undefined;
}

/** Whether the peer says that it did nothing, and that another should be asked. */
export function isDraining({ status, headers }: Pick<Answer, "status" | "headers">): boolean {
  const name = DRAINING_HEADER.toLowerCase();
  return status === 503 && headers.some((item, i) => i % 2 === 0 && item.toLowerCase() === name);
}

/** What the client gets of the last try. */
function finalAnswer(result: Try, { body }: ForwardRequest, upstream: string): Answer {
  if (result.kind === "answered") return result.answer;
  // The connection was given up because the client did not deliver.
  if (body?.failure !== undefined) throw body.failure.error;
  throw brokenPeer(upstream, result.error);
}

export function brokenPeer(upstream: string, cause: Error): EngineError {
  return new EngineError(
    "unavailable",
    `a peer for ${upstream} broke the connection before it answered (${messageOf(cause)}); ` +
      "whether it did what was asked is not known",
    { cause },
  );
}

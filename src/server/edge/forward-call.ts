import { EngineError } from "../../core/errors.ts";
import type { Metrics } from "../../core/metrics.ts";
import { forward } from "../../io/http/client/forwarder.ts";
import type { Peers } from "../../io/http/client/peers.ts";
import { ReplayableBody, type ReplayBudget } from "../../io/http/client/replayable-body.ts";
import type { HttpRequest, HttpResponse } from "../../io/http/http.ts";
import { cameBack, requestHeaders, responseCookies, responseHeaders } from "./forward-headers.ts";
import { forwardUpgrade } from "./forward-websocket.ts";
import type { ForwardCall } from "../route.ts";

export type ForwardOptions = {
  peers: Peers;
  /** What the peers are called in messages and metrics: `query`, `ingest`. */
  upstream: string;
  metrics: Metrics;
  /** For the bodies of all requests of this process. */
  budget: ReplayBudget;
  /** Names this process to itself, in `Via`; one word. */
  edgeId: string;
};

/** Answers with what a peer answers: the body goes both ways as it comes, no faster than the other side takes it. */
export function createForwardCall(options: ForwardOptions): ForwardCall {
  const { peers, upstream, metrics, budget, edgeId } = options;
  return async ({ request, requestId, isWebSocket }) => {
    if (cameBack(request, edgeId)) {
      throw new EngineError("unavailable", `the request came back to this edge: its peers for ${upstream} lead to it`);
    }
    if (isWebSocket && request.webSocket !== undefined) {
      return await forwardUpgrade(options, { request, requestId, target: targetOf(request) });
    }
    const answer = await forward(
      peers,
      { upstream, metrics },
      {
        method: request.method,
        path: targetOf(request),
        headers: requestHeaders(request, requestId, edgeId),
        body: bodyOf(request, budget),
        signal: request.signal,
        idempotent: request.header("x-idempotency-key") !== undefined,
      },
    );
    const response: HttpResponse = {
      status: answer.status,
      headers: responseHeaders(answer.headers),
      cookies: responseCookies(answer.headers),
    };
    // An answer to HEAD has no body, and its Content-Length is of another.
    if (request.method !== "HEAD") response.body = answer.body;
    return response;
  };
}

/** Byte for byte as the client sent it. */
function targetOf({ path, query }: HttpRequest): string {
  const target = query === "" ? path : `${path}?${query}`;
  return Buffer.from(target, "utf8").toString("latin1");
}

/** How much may come is for the peer to say. */
function bodyOf(request: HttpRequest, budget: ReplayBudget): ReplayableBody | undefined {
  const length = request.header("content-length");
  if (length === undefined && request.header("transfer-encoding") === undefined) return undefined;
  const announcedBytes = length === undefined ? undefined : Number(length);
  if (announcedBytes === 0) return undefined;
  return new ReplayableBody(request.stream(Number.POSITIVE_INFINITY, { shared: true }), budget, announcedBytes);
}

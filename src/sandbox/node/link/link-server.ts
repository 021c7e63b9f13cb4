import { constants, performServerHandshake, type ServerHttp2Stream } from "node:http2";
import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { WebSocketConnection } from "../../../io/http/websocket.ts";
import { NODE_METHODS, type NodeCallHandler, type NodeReply } from "../../contract/link/calls.ts";
import { CALL_HEAD_BYTES, LINK_SESSION, REPLY_HEAD_BYTES, widen } from "../../contract/link/link.ts";
import { encodeHead, failureOf, IncomingMessage, sendMessage } from "../../contract/link/link-stream.ts";
import { WebSocketDuplex } from "../../contract/link/websocket-duplex.ts";

const callHead = z.object({
  method: z.enum(NODE_METHODS),
  sandbox_id: z.string(),
  params: z.unknown(),
  body: z.boolean(),
});

const GIVEN_UP = new EngineError("unavailable", "the call was given up, or is over");

export type LinkServerOptions = {
  handler: NodeCallHandler;
  /** Is told of a sandbox whose desired state has changed. */
  onDesiredState: (sandboxId: string) => void;
  log: Log;
};

/** The node's side of a connection to the control plane: answers its calls. Resolves when the connection is over. */
export async function serveCalls(connection: WebSocketConnection, options: LinkServerOptions): Promise<void> {
  const duplex = new WebSocketDuplex(connection, options.onDesiredState);
  const session = performServerHandshake(duplex, LINK_SESSION);
  widen(session);
  // It ends the connection, and with it the streams.
  session.on("error", () => undefined);
  session.on("stream", (stream) => void answer(stream, options));
  session.once("close", () => connection.close());
  await connection.closed;
  session.destroy();
}

async function answer(stream: ServerHttp2Stream, { handler, log }: LinkServerOptions): Promise<void> {
  const request = new IncomingMessage(stream, CALL_HEAD_BYTES);
  const abort = new AbortController();
  // Also when it was answered: then nobody listens any more.
  stream.once("close", () => abort.abort(GIVEN_UP));
  let reply: NodeReply | { error: unknown };
  let head: Buffer;
  try {
    const { method, sandbox_id: sandboxId, params, body } = readHead(await request.head);
    abort.signal.throwIfAborted();
    if (!body) request.resume();
    const call = { method, sandboxId, params, signal: abort.signal };
    reply = await handler(body ? { ...call, body: request } : call);
    head = encodeHead({ result: reply.result ?? null, body: reply.body !== undefined }, REPLY_HEAD_BYTES);
  } catch (error) {
    if (!(error instanceof EngineError)) log.error({ err: error }, "a call of the control plane failed");
    reply = { error };
    head = encodeHead({ error: failureOf(error) }, REPLY_HEAD_BYTES);
  }
  const body = "body" in reply ? reply.body : undefined;
  if (stream.closed || stream.destroyed) {
    body?.destroy();
    return;
  }
  stream.respond({ [constants.HTTP2_HEADER_STATUS]: 200 }, { waitForTrailers: true });
  // Nobody takes what the caller may still send; it stops when it has the reply.
  void sendMessage(stream, head, body).then(() => request.resume());
}

function readHead(head: unknown): z.output<typeof callHead> {
  const { data } = callHead.safeParse(head);
  if (data === undefined) throw new EngineError("bad_request", "a call that this node does not know");
  return data;
}

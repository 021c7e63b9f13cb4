import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import type { WebSocketConnection } from "../../../io/http/websocket.ts";
import type { NodeCall, NodeReply } from "../../contract/link/calls.ts";
import { CALL_HEAD_BYTES, LINK_SESSION, MAX_STREAMS, REPLY_HEAD_BYTES, widen } from "../../contract/link/link.ts";
import { encodeHead, errorOf, IncomingMessage, sendMessage } from "../../contract/link/link-stream.ts";
import { WebSocketDuplex } from "../../contract/link/websocket-duplex.ts";

/** What a node answers a call with, before the body of its reply. */
const replyHead = z.union([
  z.object({ error: z.unknown() }).transform(({ error }) => ({ failure: errorOf(error) })),
  z.object({ result: z.unknown(), body: z.boolean() }),
]);

/** The control plane's side of a connection to a node. It ends with the WebSocket. */
export class NodeSession {
  readonly #connection: WebSocketConnection;
  readonly #session: ClientHttp2Session;
  #calls = 0;

  constructor(connection: WebSocketConnection) {
    this.#connection = connection;
    // A node has no text to send.
    const duplex = new WebSocketDuplex(connection, () => connection.terminate());
    this.#session = connect("http://node", {
      ...LINK_SESSION,
      peerMaxConcurrentStreams: MAX_STREAMS,
      createConnection: () => duplex,
    });
    this.#session.once("connect", widen);
    // It ends the connection, which whoever made a call is told.
    this.#session.on("error", () => undefined);
    this.#session.once("close", () => connection.close());
  }

  /** Resolves when the connection is over. */
  get closed(): Promise<unknown> {
    return this.#connection.closed;
  }

  /** See `NodeCaller`. Rejects with the reason of the signal, `unavailable`, or what the node says. */
  async call({ method, sandboxId, params, body, signal }: NodeCall): Promise<NodeReply> {
    signal.throwIfAborted();
    const head = encodeHead({ method, sandbox_id: sandboxId, params, body: body !== undefined }, CALL_HEAD_BYTES);
    const stream = this.#open();
    const reply = new IncomingMessage(stream, REPLY_HEAD_BYTES);
    const abort = (): void => void reply.destroy(asError(signal.reason));
    signal.addEventListener("abort", abort);
    stream.once("close", () => signal.removeEventListener("abort", abort));
    // Nobody takes any more of what is sent along.
    reply.once("whole", () => {
      if (!stream.writableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
    });
    // What goes wrong with what is sent, the node says or the stream's end.
    void sendMessage(stream, head, body);
    try {
      const answer = replyHead.safeParse(await reply.head);
      if (!answer.success) throw new EngineError("unavailable", "the node's answer is none");
      if ("failure" in answer.data) throw answer.data.failure;
      const { result, body: hasBody } = answer.data;
      if (hasBody) return { result, body: reply };
      reply.resume();
      return { result };
    } catch (error) {
      reply.destroy();
      throw error;
    }
  }

  /** Tells the node that the order of a sandbox has changed. */
  tell(sandboxId: string): void {
    // Where the connection is closed, the node looks by itself.
    this.#connection.send(sandboxId).catch(() => undefined);
  }

  /** Breaks the connection off: calls under way fail. */
  terminate(): void {
    this.#connection.terminate();
  }

  #open(): ClientHttp2Stream {
    if (this.#calls >= MAX_STREAMS) {
      throw new EngineError("unavailable", `the node has ${MAX_STREAMS} calls at once; try again`);
    }
    if (this.#connection.signal.aborted || this.#session.closed || this.#session.destroyed) throw gone();
    const stream = this.#session.request(
      { [constants.HTTP2_HEADER_METHOD]: "POST", [constants.HTTP2_HEADER_PATH]: "/" },
      { endStream: false, waitForTrailers: true },
    );
    this.#calls++;
    stream.once("close", () => this.#calls--);
    return stream;
  }
}

function gone(): EngineError {
  return new EngineError("unavailable", "the connection to the node is closed");
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new EngineError("unavailable", "the call was given up");
}

import { request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { pipeline, type Duplex } from "node:stream";
import { messageOf } from "../../../core/errors.ts";
import { EgressRefusal } from "./refusal.ts";

const MAX_ANSWER_HEAD_BYTES = 64 * 1024;

export type Exchanged = {
  /** To the server, this request's alone. */
  socket: Duplex;
  path: string;
  headers: Record<string, string | string[]>;
  /** The fields of the answer that go on. */
  onAnswer: (answer: IncomingMessage) => Record<string, string[]>;
};

/**
 * Sends a request on, and its answer back as it comes. Resolves when the answer has ended; rejects with `EgressRefusal`
 * when there is none, also for a client that has gone. The socket ends in any case.
 */
export async function exchange(
  request: IncomingMessage,
  response: ServerResponse,
  { socket, path, headers, onAnswer }: Exchanged,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  try {
    // It may have gone while the socket was being made: then nothing here would ever end.
    if (response.destroyed || request.socket.destroyed) throw new EgressRefusal(502, "the client has gone");
    const outgoing = httpRequest({
      method: request.method ?? "GET",
      path,
      headers,
      setHost: false,
      maxHeaderSize: MAX_ANSWER_HEAD_BYTES,
      createConnection: () => socket,
    });
    outgoing.on("error", (error) => {
      reject(new EgressRefusal(502, `the server did not answer: ${messageOf(error)}`));
    });
    outgoing.once("close", () => {
      // Nothing where there is an answer: then its end tells.
      if (!response.headersSent) reject(new EgressRefusal(502, "the server did not answer: the connection ended"));
    });
    outgoing.once("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, onAnswer(answer));
      // A stream of events begins before its first event; what has a length goes with its head.
      if (answer.headers["content-length"] === undefined) response.flushHeaders();
      pipeline(answer, response, (error) => {
        if (error) response.destroy();
        resolve();
      });
    });
    response.once("close", () => outgoing.destroy());
    // A server may answer before it has read all, and end the connection: the answer goes to the client all the same,
    // and what is left of the body is dropped.
    request.once("error", () => outgoing.destroy());
    request.pipe(outgoing);
    await promise;
  } finally {
    socket.destroy();
  }
}

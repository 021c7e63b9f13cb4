import type { Agent, IncomingMessage } from "node:http";
import { eventTextsIn } from "../../../client/server-sent-events.ts";

/** The other side of `socket-server.ts`. */
export type PostMessage = (message: string, options: PostOptions) => Promise<void>;
export type Messenger = { post: PostMessage; close: () => void };

export type PostOptions = {
  /** Gives the message up. */
  signal: AbortSignal;
  /** Is given each message of the answer, when it is whole. */
  onMessage: (message: unknown) => Promise<void>;
};

/** The engine is not there, or not any more, or is about to leave: what was asked may be asked again. */
export class EngineGone extends Error {
  constructor(cause?: unknown) {
    super("no engine answers at the socket", { cause });
    this.name = "EngineGone";
  }
}

/** Where an engine takes messages: at a socket of this machine, or as a server. */
export type MessagePlace = { socketPath: string } | { url: string; token?: string | undefined };

/**
 * Sends messages about a database to the engine at `place`. What it returns resolves when the answer is there, and rejects
 * with `EngineGone` where it has not come to its end.
 */
export function messagesTo(place: MessagePlace, database: string): Messenger {
  let agent: Agent | undefined;
  const post: PostMessage = async (message, { signal, onMessage }) => {
    let answer: IncomingMessage;
    try {
      // TLS takes time to load.
      const { Agent: NewAgent, request } = isSecure(place) ? await import("node:https") : await import("node:http");
      // One connection for each message that waits, kept for the next.
      agent ??= new NewAgent({ keepAlive: true });
      answer = await new Promise<IncomingMessage>((resolve, reject) => {
        const headers = {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(message),
          "x-database": database,
          ...("token" in place && place.token !== undefined && { authorization: `Bearer ${place.token}` }),
        };
        const options = { method: "POST", agent, headers, signal };
        const sent =
          "url" in place
            ? request(`${place.url}${PATH}`, options, resolve)
            : request({ ...options, socketPath: place.socketPath, path: PATH }, resolve);
        sent.once("error", reject);
        sent.end(message);
      });
    } catch (error) {
      throw new EngineGone(error);
    }
    if (answer.statusCode === 503) {
      answer.destroy();
      throw new EngineGone();
    }
    await eachMessage(answer, onMessage);
  };
  return { post, close: () => agent?.destroy() };
}

const PATH = "/mcp/v1";

function isSecure(place: MessagePlace): boolean {
  return "url" in place && place.url.startsWith("https:");
}

async function eachMessage(answer: IncomingMessage, onMessage: PostOptions["onMessage"]): Promise<void> {
  if (answer.headers["content-type"]?.startsWith("text/event-stream") === true) {
    for await (const { text } of eventTextsIn(readOf(answer))) await onMessage(JSON.parse(text));
    return;
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of readOf(answer)) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  if (text === "") return;
  const value: unknown = JSON.parse(text);
  for (const message of Array.isArray(value) ? (value as unknown[]) : [value]) await onMessage(message);
}

async function* readOf(answer: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    yield* answer as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw new EngineGone(error);
  }
}

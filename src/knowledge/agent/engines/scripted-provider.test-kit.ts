import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { sleep, systemClock } from "../../../core/clock.ts";
import {
  CHAT_COMPLETIONS,
  MESSAGES,
  RESPONSES,
  type Made,
  type ScriptedReply,
  type Wire,
} from "./scripted-wire.test-kit.ts";

/** One reply per request in the order they come, or a function of the request and its number, from 0 on. */
export type Script = readonly ScriptedReply[] | ((request: ProviderRequest, index: number) => ScriptedReply);

export type ProviderRequest = {
  method: string;
  path: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Parsed; undefined where there is none. */
  body: Record<string, unknown> | undefined;
  /** Times are those of `systemClock.monotonicMs`. */
  atMs: number;
  /** When the client closed the connection before it had the whole answer. */
  clientLeftAtMs: number | undefined;
  /** Resolves to that. */
  clientLeft: Promise<number>;
};

export type ScriptedProvider = {
  /** Without a path: what the options of base URLs take. */
  url: string;
  /** Of models only, in the order they came. */
  requests: readonly ProviderRequest[];
  /** All, those for lists of models too. */
  allRequests: readonly ProviderRequest[];
  /** Replaces what is left of the script; its numbers begin again with 0. */
  play: (script: Script) => void;
  /** Resolves when so many requests of models have come. */
  reached: (count: number) => Promise<void>;
  close: () => Promise<void>;
};

export type ScriptedProviderOptions = {
  /** Of `/v1/models`. */
  models?: readonly string[];
  /** Of `/api/tags`; without it there is no such path. */
  tags?: readonly string[];
  /** Refuses both lists with it. */
  listStatus?: number;
  /** In place of both lists: what is sent as it is. */
  listBody?: string;
  /** Lists are never answered. */
  listHangs?: true;
};

const WIRES: Readonly<Record<string, Wire>> = {
  "/v1/messages": MESSAGES,
  "/v1/responses": RESPONSES,
  "/v1/chat/completions": CHAT_COMPLETIONS,
};

/**
 * A provider of language models that says what a script has for it, over HTTP on a free port: Anthropic Messages at
 * `/v1/messages`, OpenAI Responses at `/v1/responses`, chat completions at `/v1/chat/completions`, each as a stream or as
 * one answer; and lists of models at `/v1/models` and `/api/tags`.
 */
export async function startScriptedProvider(
  script: Script = [],
  options: ScriptedProviderOptions = {},
): Promise<ScriptedProvider> {
  const requests: ProviderRequest[] = [];
  const allRequests: ProviderRequest[] = [];
  let waiting: { count: number; tell: () => void }[] = [];
  let playing = script;
  let next = 0;

  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const request = await received(incoming, response);
    allRequests.push(request);
    const wire = request.method === "POST" ? WIRES[request.path] : undefined;
    if (wire === undefined) {
      sendList(request, response, options);
      return;
    }
    const index = next++;
    const reply = typeof playing === "function" ? playing(request, index) : playing[index];
    requests.push(request);
    for (const { count, tell } of waiting) if (requests.length >= count) tell();
    waiting = waiting.filter(({ count }) => requests.length < count);
    const made: Made = { index: requests.length, model: String(request.body?.["model"]) };
    if (reply === undefined) sendJson(response, 500, { error: { message: `the script has no reply ${index}` } });
    else await send(response, wire, reply, made, request.body?.["stream"] === true);
  };

  const server = createServer((incoming, response) => {
    // A test that is over closes the connection; any other failure of this server is its client's to see.
    answer(incoming, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    allRequests,
    play: (another) => {
      playing = another;
      next = 0;
    },
    reached: (count) =>
      new Promise((resolve) => {
        if (requests.length >= count) resolve();
        else waiting.push({ count, tell: resolve });
      }),
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function received(incoming: IncomingMessage, response: ServerResponse): Promise<ProviderRequest> {
  const { promise: clientLeft, resolve: left } = Promise.withResolvers<number>();
  const chunks: Buffer[] = [];
  const request: ProviderRequest = {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    headers: incoming.headers,
    body: undefined,
    atMs: systemClock.monotonicMs(),
    clientLeftAtMs: undefined,
    clientLeft,
  };
  response.on("close", () => {
    if (response.writableFinished || CUT.has(response)) return;
    request.clientLeftAtMs = systemClock.monotonicMs();
    left(request.clientLeftAtMs);
  });
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  if (text !== "") request.body = JSON.parse(text) as Record<string, unknown>;
  return request;
}

/** Answers that this server ended itself. */
const CUT = new WeakSet<ServerResponse>();

async function send(response: ServerResponse, wire: Wire, reply: ScriptedReply, made: Made, isStream: boolean) {
  const { status, hang, delayMs = 0, headers = {} } = reply;
  if (delayMs > 0) await sleep(systemClock, delayMs);
  if (status !== undefined) {
    sendJson(response, status, reply.errorBody ?? wire.failure(status), headers);
    return;
  }
  const says = [reply.thinking, reply.text, reply.toolCalls].some((part) => part !== undefined && part.length > 0);
  if (hang === true && !says) return;
  const type = isStream ? "text/event-stream" : "application/json";
  response.writeHead(200, { "Content-Type": type, ...headers });
  await write(response, partsOf(wire, reply, made, isStream), reply);
  if (hang !== true && !CUT.has(response)) response.end();
}

function partsOf(wire: Wire, reply: ScriptedReply, made: Made, isStream: boolean): string[] {
  if (reply.rawBody !== undefined) return [reply.rawBody];
  if (!isStream) return [JSON.stringify(wire.answer(reply, made))];
  const frames = wire.frames(reply, made);
  if (reply.streamError === undefined && reply.hang !== true) return frames;
  const open = frames.slice(0, -closingFrames(wire));
  return reply.streamError === undefined ? open : [...open, wire.streamFailure(reply.streamError)];
}

/** How many frames at the end of a stream say that it is whole. */
function closingFrames(wire: Wire): number {
  if (wire === MESSAGES) return 2;
  return wire === RESPONSES ? 1 : 3;
}

async function write(
  response: ServerResponse,
  parts: readonly string[],
  { byteDelayMs, cutAfterBytes }: ScriptedReply,
): Promise<void> {
  let left = cutAfterBytes ?? Number.POSITIVE_INFINITY;
  for (const part of parts) {
    const bytes = Buffer.from(part).subarray(0, left);
    left -= bytes.length;
    for (const piece of byteDelayMs === undefined ? [bytes] : Array.from(bytes, (byte) => Buffer.of(byte))) {
      if (response.destroyed) return;
      // Waits for its client, as a large reply must.
      if (!response.write(piece)) await drained(response);
      if (byteDelayMs !== undefined) await sleep(systemClock, byteDelayMs);
    }
    if (left > 0) continue;
    CUT.add(response);
    // What was written goes out first: a socket that is destroyed drops it.
    response.socket?.once("finish", () => response.destroy());
    response.socket?.destroySoon();
    return;
  }
}

async function drained(response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
}

function sendList(request: ProviderRequest, response: ServerResponse, options: ScriptedProviderOptions): void {
  const { models = [], tags, listStatus, listBody, listHangs } = options;
  const isList = request.path.startsWith("/v1/models") || (request.path === "/api/tags" && tags !== undefined);
  if (request.method !== "GET" || !isList) sendJson(response, 404, { error: { message: "no such path" } });
  else if (listHangs === true) return;
  else if (listStatus !== undefined) sendJson(response, listStatus, { error: { message: "refused" } });
  else if (listBody !== undefined) response.writeHead(200, { "Content-Type": "application/json" }).end(listBody);
  else if (request.path === "/api/tags") {
    sendJson(response, 200, { models: (tags ?? []).map((name) => ({ name, model: name })) });
  } else sendJson(response, 200, { object: "list", data: models.map((id) => ({ id, object: "model" })) });
}

function sendJson(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(text);
}

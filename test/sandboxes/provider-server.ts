import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { SecureContext } from "node:tls";
import { callbackify } from "node:util";
import { listen } from "../../src/sandbox/network/egress/proxy.test-kit.ts";
import { MODEL_FORMATS, type ModelFormat, type ModelStep } from "./provider-formats.ts";

/** A request as it arrived. */
export type ProviderRequest = {
  method: string;
  /** Without the query. */
  path: string;
  headers: IncomingHttpHeaders;
  /** Of JSON; undefined where there was none. */
  body: unknown;
  /** Names of the tools that the model was offered. */
  tools: string[];
};

export type ProviderServerOptions = {
  /**
   * What the model says, by how many tools of the conversation were used; the last step is said from then on. A request
   * that offers no tools gets a text.
   */
  steps: readonly ModelStep[];
  /** By the name that a client asks for; plain HTTP where undefined. */
  contextFor?: (host: string) => Promise<SecureContext>;
};

/**
 * The APIs of the providers of models, with a model that follows a script: Anthropic's Messages, OpenAI's Responses and
 * Gemini's `generateContent`, each as JSON and as events. Connections are not upgraded: clients that would rather have a
 * WebSocket go on without.
 */
export class ProviderServer {
  readonly requests: ProviderRequest[] = [];
  readonly #options: ProviderServerOptions;
  readonly #server: ReturnType<typeof createServer> | ReturnType<typeof createTlsServer>;
  port = 0;

  constructor(options: ProviderServerOptions) {
    this.#options = options;
    const { contextFor } = options;
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      void this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    };
    this.#server =
      contextFor === undefined
        ? createServer(answer)
        : createTlsServer({ SNICallback: callbackify(contextFor) }, answer);
    this.#server.on("upgrade", (request: IncomingMessage, socket) => {
      this.#keep(request, undefined, []);
      socket.end("HTTP/1.1 426 Upgrade Required\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
  }

  async start(): Promise<this> {
    this.port = await listen(this.#server);
    return this;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const path = pathOf(request);
    const format = MODEL_FORMATS.find((one) => request.method === "POST" && one.asks(path));
    const tools = format?.tools(body) ?? [];
    this.#keep(request, body, tools);
    if (format !== undefined) this.#speak(format, { path, body, isAsked: tools.length > 0 }, response);
    else if (path.endsWith("/models")) send(response, { object: "list", data: [], models: [], has_more: false });
    else if (path.endsWith("/count_tokens")) send(response, { input_tokens: 10 });
    else if (path.endsWith(":countTokens")) send(response, { totalTokens: 10 });
    else send(response, { error: { type: "not_found_error", message: "there is no such thing" } }, 404);
  }

  #speak(
    format: ModelFormat,
    { path, body, isAsked }: { path: string; body: unknown; isAsked: boolean },
    response: ServerResponse,
  ): void {
    const { steps } = this.#options;
    const step = (isAsked ? (steps[format.results(body)] ?? steps.at(-1)) : undefined) ?? { text: "A title" };
    const id = String(this.requests.length);
    if (!format.streams(path, body)) {
      send(response, format.whole(step, id));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    for (const { name, data } of format.events(step, id)) {
      if (name !== undefined) response.write(`event: ${name}\n`);
      response.write(`data: ${JSON.stringify(data)}\n\n`);
    }
    response.end();
  }

  #keep(request: IncomingMessage, body: unknown, tools: string[]): void {
    this.requests.push({ method: request.method ?? "", path: pathOf(request), headers: request.headers, body, tools });
  }
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? "").split("?")[0] ?? "";
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const text = Buffer.concat(pieces).toString("utf8");
  return text === "" ? undefined : JSON.parse(text);
}

function send(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

import {
  createMcpHandler,
  isLegacyRequest,
  WebStandardStreamableHTTPServerTransport,
  type McpHttpHandler,
  type ServerEventBus,
} from "@modelcontextprotocol/server";
import { untilAborted } from "../../core/concurrency.ts";
import type { ToolDeps } from "./deps.ts";
import { MCP_LIMITS } from "./limits.ts";
import { toolServer, type Asker } from "./server.ts";

/** The library's side of MCP over HTTP: 2026-07-28 and later by its handler, earlier protocols by a transport for each request. */
export class Protocol {
  readonly #deps: ToolDeps;
  readonly #modern: McpHttpHandler;
  /** Who sent the requests that the handler is answering. */
  readonly #askers = new WeakMap<Request, Asker>();

  constructor(deps: ToolDeps, bus: ServerEventBus) {
    this.#deps = deps;
    this.#modern = createMcpHandler(
      ({ requestInfo }) => {
        const asker = requestInfo && this.#askers.get(requestInfo);
        if (asker === undefined) throw new Error("a request to MCP has no sender");
        return toolServer(deps, asker);
      },
      {
        legacy: "reject",
        bus,
        maxSubscriptions: MCP_LIMITS.streams,
        onerror: (error) => deps.log.debug({ err: error }, "a request to MCP was refused"),
      },
    );
  }

  /** `parsedBody` is the body of the request, which itself has none. */
  async answer(request: Request, asker: Asker, parsedBody: unknown): Promise<Response> {
    if (await isLegacyRequest(request, parsedBody)) return await this.#legacy(request, asker, parsedBody);
    this.#askers.set(request, asker);
    return await untilAborted(this.#modern.fetch(request, { parsedBody }), asker.signal);
  }

  async #legacy(request: Request, asker: Asker, parsedBody: unknown): Promise<Response> {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: undefined,
      enableJsonResponse: true,
    });
    const server = toolServer(this.#deps, asker);
    await server.connect(transport);
    try {
      return await untilAborted(transport.handleRequest(request, { parsedBody }), asker.signal);
    } finally {
      await server.close();
    }
  }
}

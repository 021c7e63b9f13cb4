import { lstat, mkdir, unlink } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ANONYMOUS } from "../../../auth/caller.ts";
import { EngineError, StartupError, systemCodeOf } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { Log } from "../../../core/log.ts";
import { ClientGoneError, type HttpResponse } from "../../../io/http/http.ts";
import { asEngineError } from "../../../server/error-response.ts";
import { accepted } from "../../memory/input.ts";
import type { McpHttp } from "../http.ts";
import { MCP_LIMITS } from "../limits.ts";
import { mcpBody, rpcFailure } from "../routes/mcp.ts";
import { headersOf } from "./protocol-headers.ts";

export type SocketServerOptions = { path: string; mcp: Pick<McpHttp, "post">; newId: IdSource; log: Log };

/**
 * `POST /mcp/v1` on a socket in the file system, for the relays (`relay.ts`) and commands of this machine. Only the user who
 * owns the engine's files can open it, and may do there what anybody may while authentication is off.
 */
export class SocketServer {
  readonly #options: SocketServerOptions;
  readonly #server: Server;
  /** Of each connection, how many messages of it are not answered yet. */
  readonly #unanswered = new Map<Socket, number>();
  #isDraining = false;

  constructor(options: SocketServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    // Relays keep their connections: one that the server closes between two messages would cost them a repetition.
    this.#server.keepAliveTimeout = 0;
    this.#server.on("connection", (socket: Socket) => {
      this.#unanswered.set(socket, 0);
      socket.once("close", () => this.#unanswered.delete(socket));
    });
  }

  /**
   * Listens in place of whoever listened there before; the caller holds the lock of the socket.
   * @throws StartupError where something else than a socket has its name
   */
  async listen(): Promise<void> {
    const { path } = this.#options;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await removeSocket(path);
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      // The socket has its mode from the beginning: it is bound before `listen` returns.
      const before = process.umask(0o177);
      this.#server.listen(path, resolve);
      process.umask(before);
    });
  }

  /**
   * Takes nothing new; resolves when everything that was asked is answered. Each connection ends with its last answer: one
   * that nothing was said on would stay for as long as its client likes.
   */
  async drain(): Promise<void> {
    if (!this.#server.listening) return;
    this.#isDraining = true;
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.#unanswered.keys()) this.#endIfDone(socket);
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Has the connection closed by this side, once what was written is out, where nothing more is to be answered on it. */
  #endIfDone(socket: Socket): void {
    if (this.#isDraining && this.#unanswered.get(socket) === 0) socket.destroySoon();
  }

  #count(socket: Socket, change: 1 | -1): void {
    const count = this.#unanswered.get(socket);
    if (count !== undefined) this.#unanswered.set(socket, count + change);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    this.#count(socket, 1);
    response.once("close", () => {
      this.#count(socket, -1);
      this.#endIfDone(socket);
    });
    const requestId = this.#options.newId();
    try {
      await send(response, await this.#handle(request, response, requestId));
    } catch (error) {
      if (response.destroyed) return;
      const failure = asEngineError(error, requestId);
      if (failure.status >= 500) this.#options.log.error({ err: error, requestId }, "a message over the socket failed");
      if (response.headersSent) response.destroy();
      else await send(response, rpcFailure(failure)).catch(() => response.destroy());
    }
  }

  async #handle(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<HttpResponse> {
    if (request.url !== "/mcp/v1") throw new EngineError("not_found", "there is nothing but /mcp/v1");
    if (request.method !== "POST") throw new EngineError("method_not_allowed", "accepted is POST");
    const gone = new AbortController();
    response.once("close", () => gone.abort(new ClientGoneError()));
    const json = accepted(mcpBody, await messageIn(request), "the message");
    const headers = headersOf(json);
    const database = request.headers["x-database"];
    return await this.#options.mcp.post({
      caller: ANONYMOUS,
      authenticateAgain: () => Promise.resolve(ANONYMOUS),
      request: { header: (name) => headers[name], signal: gone.signal },
      requestId,
      clientAddress: "",
      headers: { "x-database": typeof database === "string" ? database : "default" },
      json,
    });
  }
}

/**
 * Uses `unlink` because `rm` calls `lstat` first. Node 22 (22.23.5; not 24.21.0) keeps the result of that call: while it is
 * of a socket, Node loads the next module behind a symbolic link by the path of the link, as a second copy of the module.
 */
async function removeSocket(path: string): Promise<void> {
  try {
    if ((await lstat(path)).isSocket()) return await unlink(path);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return;
    throw error;
  }
  throw new StartupError(`${path} is no socket: remove it, for agents are to find the engine there`);
}

async function messageIn(request: IncomingMessage): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    sizeBytes += chunk.length;
    if (sizeBytes > MCP_LIMITS.bodyBytes) {
      throw new EngineError("body_too_large", `a message has at most ${MCP_LIMITS.bodyBytes} bytes`);
    }
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch (error) {
    throw new EngineError("parse_error", "the message is no JSON", { cause: error });
  }
}

async function send(response: ServerResponse, { status, headers, body }: HttpResponse): Promise<void> {
  response.writeHead(status, headers);
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) response.end(body);
  else await pipeline(Readable.from(body, { objectMode: false }), response);
}

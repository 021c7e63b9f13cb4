import type { IncomingMessage } from "node:http";
import type { WebSocket } from "ws";
import type { Json } from "../../client/api.ts";
import { apiFailure, connectionFailure, readApiError, type Target } from "../../client/client.ts";
import type { CliContext, CliOutput } from "../../client/context.ts";
import { CliError } from "../../client/failure.ts";
import { commandExitCode } from "./sandbox-exit.ts";
import { sandboxPath } from "./sandbox-path.ts";
import { visible } from "../../client/text.ts";

/** Of a terminal that does not say. */
const USUAL_SIZE = { columns: 80, rows: 24 } as const;
const MOST_CELLS = 1_000;
const NORMAL_CLOSURE = 1000;
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
const HANDSHAKE_MS = 30_000;
/** What Control and D types: the end of input. */
const END_OF_INPUT = Buffer.from([4]);

/**
 * A terminal in a sandbox: what is typed here goes there byte for byte, and the window there has the size of the one
 * here. Resolves to the exit code of the shell.
 */
export async function runShell(context: CliContext, target: Target, id: string): Promise<number> {
  const { stdin, stdout } = context.deps;
  const terminal = new Terminal(context, target, await connect(context, target, id));
  await terminal.opened;
  const resize = (): void => terminal.resize();
  const type = (bytes: Buffer): void => terminal.type(bytes);
  const end = (): void => terminal.type(END_OF_INPUT);
  stdin.setRawMode?.(true);
  stdin.on("data", type).on("end", end);
  stdout.on("resize", resize);
  try {
    return await terminal.ended;
  } finally {
    stdin.off("data", type).off("end", end).pause();
    stdin.setRawMode?.(false);
    stdout.off("resize", resize);
    terminal.close();
  }
}

async function connect(context: CliContext, target: Target, id: string): Promise<WebSocket> {
  const { WebSocket } = await import("ws");
  const token = (await target.freshToken?.()) ?? target.token;
  const { columns, rows } = sizeOf(context.deps.stdout);
  const url = `${target.url.replace(/^http/, "ws")}${sandboxPath(id)}/shell?columns=${columns}&rows=${rows}`;
  return new WebSocket(url, {
    maxPayload: MAX_MESSAGE_BYTES,
    handshakeTimeout: HANDSHAKE_MS,
    headers: {
      "User-Agent": `engine/${context.deps.version}`,
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
  });
}

/** It listens from the beginning on: what the server says with its first packet is not lost. */
class Terminal {
  readonly opened: Promise<void>;
  /** The exit code of the shell. */
  readonly ended: Promise<number>;
  readonly #context: CliContext;
  readonly #socket: WebSocket;
  readonly #end = Promise.withResolvers<number>();

  constructor(context: CliContext, target: Target, socket: WebSocket) {
    this.#context = context;
    this.#socket = socket;
    const opening = Promise.withResolvers<void>();
    this.opened = opening.promise;
    this.ended = this.#end.promise;
    const fail = (error: unknown): void => {
      opening.reject(error);
      this.#end.reject(error);
    };
    // Whichever nobody waits for.
    for (const promise of [this.opened, this.ended]) promise.catch(() => undefined);
    socket.once("open", () => opening.resolve());
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.#show(data);
      else this.#hear(data.toString());
    });
    socket.once("unexpected-response", (request, response) => {
      refusal(response, target)
        .then(fail, (error: unknown) => fail(connectionFailure(error, target)))
        .finally(() => request.destroy());
    });
    socket.on("error", (error) => fail(connectionFailure(error, target)));
    socket.once("close", () => fail(new CliError(`the connection to ${target.url} ended before the shell did`)));
  }

  type(bytes: Uint8Array): void {
    this.#socket.send(bytes);
  }

  resize(): void {
    this.#socket.send(JSON.stringify({ resize: sizeOf(this.#context.deps.stdout) }));
  }

  close(): void {
    this.#socket.close(NORMAL_CLOSURE);
  }

  /** No faster than it is read here. */
  #show(bytes: Uint8Array): void {
    this.#socket.pause();
    this.#context.write(bytes).then(() => this.#socket.resume(), this.#end.reject);
  }

  #hear(text: string): void {
    const { exit, error } = objectIn(text);
    if (isObject(exit)) this.#end.resolve(commandExitCode(exit));
    else if (isObject(error)) this.#end.reject(new CliError(visible(String(error["message"]))));
  }
}

/** Why the server opens no terminal. */
async function refusal(response: IncomingMessage, target: Target): Promise<CliError> {
  const { statusCode: status = 0, headers } = response;
  const header = (name: string): string | undefined => headers[name]?.toString();
  return apiFailure(await readApiError({ status, header, body: response }), target);
}

function objectIn(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    // A message of a later version of the engine: not for this one.
    return {};
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null;
}

function sizeOf({ columns, rows }: CliOutput): { columns: number; rows: number } {
  return { columns: cellsOf(columns, USUAL_SIZE.columns), rows: cellsOf(rows, USUAL_SIZE.rows) };
}

function cellsOf(count: number | undefined, usual: number): number {
  return Math.min(count || usual, MOST_CELLS);
}

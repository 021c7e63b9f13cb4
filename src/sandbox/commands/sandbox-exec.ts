import { onStopSignal } from "../../core/stop-signal.ts";
import type { ApiFlags, Json } from "../../client/api.ts";
import {
  apiFailure,
  connectionFailure,
  openClient,
  readApiError,
  type EngineClient,
  type Target,
} from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { commandExitCode } from "./sandbox-exit.ts";
import { number, pairsIn } from "./sandbox-create.ts";
import { sandboxPath } from "./sandbox-path.ts";
import { eventsIn, overConnections, type ReceivedEvent } from "../../client/server-sent-events.ts";

export type ExecFlags = ApiFlags & {
  cwd?: string;
  env?: string[];
  timeout?: string;
  stdin?: true;
  log?: true;
  user: string;
};

/** The server says something every 15 s. */
const SILENCE_MS = 60_000;
const KILL_TIMEOUT_MS = 10_000;
/** The server takes a request of 16 MiB, of which base64 takes four bytes for three. */
const MAX_STDIN_MIB = 11;
/** The server, the node or the sandbox may be back in a moment. */
const PASSING: ReadonlySet<number> = new Set([409, 429, 503, 504]);
/** About the connection alone. */
const NOT_PRINTED: ReadonlySet<unknown> = new Set(["keepalive", "reconnect"]);

type Run = { id: string; argv: readonly string[]; flags: ExecFlags };

/**
 * Runs a command in a sandbox. Its output comes out here as it is, each stream on its own; with `--json` each event is
 * a line. When the connection breaks the command goes on, and this goes on to follow it: nothing of the output is
 * missing, and nothing comes twice. What interrupts this interrupts the command.
 */
export async function runExec(context: CliContext, target: Target, run: Run): Promise<number> {
  const request = await requestOf(context, run);
  const client = await openClient(target, `engine/${context.deps.version}`);
  const follower = new ExecFollower(context, { client, target, id: run.id, json: run.flags.json === true });
  try {
    return await follower.follow(request);
  } finally {
    follower.stop();
    await client.close();
  }
}

async function requestOf(context: CliContext, { argv, flags }: Run): Promise<Json> {
  const { cwd, env, timeout, stdin, log, user } = flags;
  return {
    command: argv,
    user,
    ...(cwd !== undefined && { cwd }),
    ...(env && { env: pairsIn(env, "--env") }),
    ...number("timeout_secs", timeout, "--timeout"),
    ...(stdin && { stdin: await readAll(context), stdin_encoding: "base64" }),
    ...(log && { log }),
  };
}

async function readAll(context: CliContext): Promise<string> {
  const pieces: Buffer[] = [];
  let sizeBytes = 0;
  for await (const piece of context.deps.stdin) {
    const bytes = Buffer.from(piece as Uint8Array);
    pieces.push(bytes);
    sizeBytes += bytes.length;
    if (sizeBytes > MAX_STDIN_MIB * 2 ** 20) {
      throw new CliError(`more than ${MAX_STDIN_MIB} MiB of input: copy it into the sandbox first`);
    }
  }
  return Buffer.concat(pieces).toString("base64");
}

type ExecFollowerOptions = { client: EngineClient; target: Target; id: string; json: boolean };

class ExecFollower {
  readonly #context: CliContext;
  readonly #options: ExecFollowerOptions;
  #execId: string | undefined;
  #lastId: string | undefined;
  #letSignalsBe: (() => void) | undefined;

  constructor(context: CliContext, options: ExecFollowerOptions) {
    this.#context = context;
    this.#options = options;
  }

  async follow(request: Json): Promise<number> {
    const { target } = this.#options;
    for await (const { id, data } of overConnections(this.#context.deps.clock, target, () => this.#connect(request))) {
      this.#lastId = id ?? this.#lastId;
      const code = await this.#tell(data);
      if (code !== undefined) return code;
      if (this.#context.readerGone) {
        await this.#kill("SIGTERM");
        return EXIT.ok;
      }
    }
    throw new Error("events end by themselves");
  }

  stop(): void {
    this.#letSignalsBe?.();
  }

  async *#connect(request: Json): AsyncGenerator<ReceivedEvent> {
    try {
      yield* this.#events(request);
    } catch (error) {
      // Whether it was begun is not known without its id.
      if (this.#execId === undefined && !(error instanceof CliError)) {
        throw connectionFailure(error, this.#options.target);
      }
      throw error;
    }
    if (this.#execId === undefined) throw new CliError("the server does not say whether the command was begun");
  }

  async *#events(request: Json): AsyncGenerator<ReceivedEvent> {
    const { client, target, id } = this.#options;
    const path = `${sandboxPath(id)}/exec`;
    const resumed = this.#lastId === undefined ? {} : { "last-event-id": this.#lastId };
    const reply = await client.send({
      ...(this.#execId === undefined
        ? { method: "POST", path: `${path}/stream`, body: JSON.stringify(request) }
        : { method: "GET", path: `${path}/${this.#execId}/stream` }),
      headers: { accept: "text/event-stream", "content-type": "application/json", ...resumed },
      timeoutMs: SILENCE_MS,
    });
    if (reply.status !== 200) {
      const error = await readApiError(reply);
      if (this.#execId !== undefined && PASSING.has(reply.status)) throw new Error(error.message);
      throw apiFailure(error, target);
    }
    yield* eventsIn(reply.body, target);
  }

  /** The exit code, once there is one. */
  async #tell(event: Json): Promise<number | undefined> {
    const { event_type: type, data } = event;
    const fields = typeof data === "object" && data !== null ? (data as Json) : {};
    const isFirst = this.#execId === undefined;
    if (type === "connected") this.#begun(fields);
    if (this.#options.json && !NOT_PRINTED.has(type) && (isFirst || type !== "connected")) {
      await this.#context.writeLine(JSON.stringify(event));
    } else if (type === "stdout") await this.#context.write(bytesOf(fields));
    else if (type === "stderr") this.#context.deps.stderr.write(bytesOf(fields));
    if (type === "error") this.#tellError(fields);
    return type === "exit" ? commandExitCode(fields) : undefined;
  }

  #begun({ exec_id: execId }: Json): void {
    if (typeof execId === "string") this.#execId = execId;
    // The next signal of the kind ends this process, whatever becomes of the command.
    this.#letSignalsBe ??= onStopSignal((signal) => {
      this.#kill(signal).catch((error: unknown) => this.#context.warn(String(error)));
    });
  }

  #tellError({ code, message }: Json): void {
    if (code !== "output_lost") throw new CliError(`the command was lost sight of: ${String(message)}`);
    if (!this.#options.json) this.#context.warn(String(message));
  }

  async #kill(signal: string): Promise<void> {
    const { client, id } = this.#options;
    const path = `${sandboxPath(id)}/exec/${this.#execId ?? ""}?signal=${signal}`;
    const reply = await client.send({ method: "DELETE", path, timeoutMs: KILL_TIMEOUT_MS });
    if (reply.status !== 204) throw new Error((await readApiError(reply)).message);
  }
}

/** Of what a command writes: text, or base64 where it is not UTF-8. */
function bytesOf({ text, data }: Json): Buffer {
  return typeof text === "string" ? Buffer.from(text) : Buffer.from(String(data), "base64");
}

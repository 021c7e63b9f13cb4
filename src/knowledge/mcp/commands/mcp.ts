import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext, EmbeddedEngine } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import type { LoadedConfig } from "../../../config/load.ts";
import { sleep } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { onStopSignal } from "../../../core/stop-signal.ts";
import { tryLock } from "../../../db/sqlite/process-lock.ts";
import { messagesTo } from "../stdio/post-message.ts";
import { StdioRelay } from "../stdio/relay.ts";
import { socketLockOf, socketPathOf, socketPathProblem } from "../stdio/socket-path.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("mcp")
    .description(
      "Serve MCP over stdio, for a coding agent on this machine (`engine setup`). The first process opens the engine of " +
        "ENGINE_HOME; others, also beside `engine serve`, pass on to it what they are asked.",
    );
  withExamples(command, ["engine mcp", "ENGINE_HOME=~/work/.engine engine mcp"]).action(
    context.action(() => serve(context)),
  );
};

async function serve(context: CliContext): Promise<number> {
  const loaded = await context.loadConfigQuietly({});
  const path = socketPathOf(loaded.config.home);
  const problem = socketPathProblem(path);
  if (problem !== undefined) throw new CliError(problem, EXIT.usage);
  const { clock, random, stdin } = context.deps;
  const messages = messagesTo(path);
  const engine = new OwnEngine(context, loaded);
  const relay = new StdioRelay({
    input: stdin as AsyncIterable<Uint8Array>,
    write: (text) => context.write(text),
    post: messages.post,
    findEngine: () => engine.find(),
    clock,
    newId: uuidV7Source(clock, random),
  });
  const stop = new AbortController();
  const off = onStopSignal(() => {
    stop.abort();
    stdin.destroy();
  });
  try {
    // Where the engine cannot start, the client sees the process end.
    await Promise.race([relay.run(stop.signal), engine.find().then(() => new Promise<never>(() => {}))]);
  } finally {
    off();
    messages.close();
    await engine.close();
  }
  return EXIT.ok;
}

/** Long enough for a server that has just opened the catalog to listen at the socket. */
const IN_USE_PAUSE_MS = 200;

/** The engine in this process, while no other one has the catalog. */
class OwnEngine {
  readonly #context: CliContext;
  readonly #loaded: LoadedConfig;
  #opening: Promise<void> | undefined;
  #release: (() => Promise<void>) | undefined;
  #isClosed = false;

  constructor(context: CliContext, loaded: LoadedConfig) {
    this.#context = context;
    this.#loaded = loaded;
  }

  /** Opens it unless there is one. */
  find(): Promise<void> {
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening?.catch(() => undefined);
    await this.#release?.();
  }

  async #open(): Promise<void> {
    const { embed, clock } = this.#context.deps;
    if (embed === undefined) throw new CliError("this program has no engine");
    if (this.#release !== undefined || this.#isClosed) return;
    // Cheap to find taken, which is what all but the first do.
    const lock = tryLock(socketLockOf(this.#loaded.config.home));
    if (lock === undefined) return;
    let engine: EmbeddedEngine | undefined;
    try {
      engine = await embed(this.#loaded);
    } finally {
      if (engine === undefined) lock.release();
    }
    if (engine === undefined) return await sleep(clock, IN_USE_PAUSE_MS);
    const { close } = engine;
    this.#release = () => close().finally(() => lock.release());
  }
}

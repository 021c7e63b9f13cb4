import type { CliContext, EmbeddedEngine } from "../../../client/context.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import type { LoadedConfig } from "../../../config/load.ts";
import { sleep } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { tryLock } from "../../../db/sqlite/process-lock.ts";
import { isAnswerTo, isMessage, repeatable, type Message } from "./messages.ts";
import { EngineGone, messagesTo, type Messenger } from "./post-message.ts";
import { socketLockOf, socketPathOf, socketPathProblem } from "./socket-path.ts";

/** As long as an engine may take to start or to leave before requests fail. */
const PATIENCE_MS = 30_000;
const PAUSE_MS = 50;
/** Long enough for a server that has just opened the catalog to listen at the socket. */
const IN_USE_PAUSE_MS = 200;

export type HomeEngineOptions = {
  /** Of calls that name none. */
  database: string;
  /** Whether one that is opened in this process stays for an agent, or only as long as one question takes. */
  isForAgent: boolean;
};

export type AskOptions = {
  /** Gives the request up. */
  signal: AbortSignal;
  /** Is given the answer, and what an engine says before it. */
  onMessage: (message: Message) => Promise<void>;
};

/**
 * The engine of this machine's home, asked at its socket. Where nobody listens there, it is opened in this process, which
 * then listens for the others.
 */
export class HomeEngine {
  readonly #context: CliContext;
  readonly #loaded: LoadedConfig;
  readonly #messenger: Messenger;
  readonly #newId: () => string;
  readonly #isForAgent: boolean;
  #opening: Promise<void> | undefined;
  #release: (() => Promise<void>) | undefined;
  #isClosed = false;

  /** @throws CliError where the home has a path that is too long for a socket */
  constructor(context: CliContext, loaded: LoadedConfig, { database, isForAgent }: HomeEngineOptions) {
    const path = socketPathOf(loaded.config.home);
    const problem = socketPathProblem(path);
    if (problem !== undefined) throw new CliError(problem, EXIT.usage);
    this.#context = context;
    this.#loaded = loaded;
    this.#isForAgent = isForAgent;
    this.#messenger = messagesTo({ socketPath: path }, database);
    this.#newId = uuidV7Source(context.deps.clock, context.deps.random);
  }

  /** Asks one engine after another until one has answered. Resolves when it has, or when the request was given up. */
  async ask(request: Message, { signal, onMessage }: AskOptions): Promise<void> {
    const { clock } = this.#context.deps;
    const text = JSON.stringify(repeatable(request, this.#newId));
    let isAnswered = false;
    let goneSinceMs: number | undefined;
    const take = async (message: unknown): Promise<void> => {
      goneSinceMs = undefined;
      if (isAnswered || signal.aborted || !isMessage(message)) return;
      isAnswered = isAnswerTo(request, message);
      await onMessage(isAnswered ? { ...message, id: request["id"] } : message);
    };
    for (;;) {
      const gone = await this.#messenger.post(text, { signal, onMessage: take }).catch(goneOf);
      if (isAnswered || signal.aborted) return;
      goneSinceMs ??= clock.monotonicMs();
      if (clock.monotonicMs() > goneSinceMs + PATIENCE_MS) throw gone ?? new EngineGone();
      await this.open();
      await sleep(clock, PAUSE_MS, signal).catch(() => undefined);
    }
  }

  /** Opens it in this process, unless it is open here or elsewhere. Resolves when it is worth asking again. */
  open(): Promise<void> {
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#messenger.close();
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
      engine = await embed(this.#loaded, { isForAgent: this.#isForAgent });
    } finally {
      if (engine === undefined) lock.release();
    }
    if (engine === undefined) return await sleep(clock, IN_USE_PAUSE_MS);
    const { close } = engine;
    this.#release = () => close().finally(() => lock.release());
  }
}

function goneOf(error: unknown): EngineGone {
  if (error instanceof EngineGone) return error;
  throw error;
}

import type { Readable, Writable } from "node:stream";
import type { Address } from "../config/kinds.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { OptionRows } from "../config/option.ts";
import type { Clock } from "../core/clock.ts";
import { messageOf, systemCodeOf } from "../core/errors.ts";
import type { Random } from "../core/random.ts";
import type { Migration } from "../db/migration.ts";
import { CliError, EXIT } from "./failure.ts";
import { styleFor, type Style } from "./text.ts";

export type CliInput = Readable & { isTTY?: boolean; setRawMode?: (on: boolean) => unknown };
export type CliOutput = Writable & { isTTY?: boolean; columns?: number; rows?: number };

/** What `serve` and `server` hand to the role that serves. */
export type ServeOptions = LoadedConfig & {
  /** Where to listen: `localHttpAddr` for `engine serve`, `httpAddr` for `engine server`. */
  listen: Address;
  /** Whether it is the engine of this machine (`engine serve`) and no deployment. */
  isLocal: boolean;
  /** Asks whoever sits at the terminal for a new password, after a sentence; undefined where nobody does. */
  askPassword?: (why: string) => Promise<string>;
};

export type EmbedOptions = {
  /** Whether it stays for an agent, whose memory files are synced then; a command that asks one thing leaves them alone. */
  isForAgent: boolean;
};

/** An engine inside the process of a command. */
export type EmbeddedEngine = {
  /** Lets what it has accepted finish, and gives the catalog up. */
  close: () => Promise<void>;
};

/** What commands need of the world around them. */
export type ContextDeps = {
  /** Serves until told to stop; resolves to the exit code. The warnings of the configuration are its to log. */
  serve: (options: ServeOptions) => Promise<number>;
  /**
   * Opens the engine of this machine inside this process, for the agents of its user: it listens on the socket of its home
   * alone. Undefined while another process has the catalog. The caller holds the lock of the socket.
   */
  embed?: (loaded: LoadedConfig, how: EmbedOptions) => Promise<EmbeddedEngine | undefined>;
  /** The options of features. */
  rows: () => Promise<OptionRows>;
  /** Every table of the program, for commands that open the catalog themselves. */
  migrations: () => Promise<readonly Migration[]>;
  version: string;
  env: Readonly<Record<string, string | undefined>>;
  stdin: CliInput;
  stdout: CliOutput;
  stderr: CliOutput;
  clock: Clock;
  random: Random;
};

/** What every command gets. */
export class CliContext {
  readonly deps: ContextDeps;
  /** Style of standard output. */
  readonly style: Style;
  /** What the process will exit with; set by the command that ran. */
  exitCode = 0;
  #readerGone = false;
  #outputFailure: unknown;

  constructor(deps: ContextDeps) {
    this.deps = deps;
    this.style = styleFor(deps.stdout, deps.env);
    // `engine sql … | head` closes the pipe early: that is the end of the work, and no failure of it. These stay for
    // the life of the process: a pipe tells that it is broken when it likes.
    deps.stdout.on("error", (error) => {
      this.#readerGone = true;
      if (systemCodeOf(error) !== "EPIPE") this.#outputFailure = error;
    });
    // There is nowhere left to tell it.
    deps.stderr.on("error", () => undefined);
  }

  /** Nobody reads standard output any more. */
  get readerGone(): boolean {
    return this.#readerGone;
  }

  /** Writes to standard output, no faster than it is read. */
  async write(data: string | Uint8Array): Promise<void> {
    const { stdout } = this.deps;
    if (!this.#readerGone && !stdout.write(data)) await onceAny(stdout, ["drain", "error", "close"]);
    if (this.#outputFailure === undefined) return;
    const reason = messageOf(this.#outputFailure);
    throw new CliError(`cannot write to standard output: ${reason}`, EXIT.failed, { cause: this.#outputFailure });
  }

  async writeLine(text = ""): Promise<void> {
    await this.write(`${text}\n`);
  }

  async writeJson(value: unknown): Promise<void> {
    await this.write(`${JSON.stringify(value, undefined, 2)}\n`);
  }

  /** One line on standard error. */
  note(text: string): void {
    this.deps.stderr.write(`${text}\n`);
  }

  warn(text: string): void {
    this.note(`${styleFor(this.deps.stderr, this.deps.env)("yellow", "warning:")} ${text}`);
  }

  /** A failure that does not end the command. */
  error(text: string): void {
    this.note(`${styleFor(this.deps.stderr, this.deps.env)("red", "error:")} ${text}`);
  }

  /** The effective configuration, with the flags of this command; its warnings go to standard error. */
  async loadConfig(flags: Readonly<Record<string, string | undefined>>): Promise<LoadedConfig> {
    const loaded = await this.loadConfigQuietly(flags);
    for (const warning of loaded.warnings) this.warn(warning);
    return loaded;
  }

  /** As `loadConfig`, for a command that passes the warnings on. */
  async loadConfigQuietly(flags: Readonly<Record<string, string | undefined>>): Promise<LoadedConfig> {
    const [{ loadConfig }, rows] = await Promise.all([import("../config/load.ts"), this.deps.rows()]);
    const given = Object.entries(flags).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    return loadConfig({ env: this.deps.env, flags: Object.fromEntries(given), rows });
  }

  /** Wraps the action of a command: its exit code is the code that it returns. */
  action<A extends unknown[]>(run: (...args: A) => Promise<number>): (...args: A) => Promise<void> {
    return async (...args) => {
      this.exitCode = await run(...args);
    };
  }
}

function onceAny(stream: Writable, events: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      for (const event of events) stream.off(event, done);
      resolve();
    };
    for (const event of events) stream.once(event, done);
  });
}

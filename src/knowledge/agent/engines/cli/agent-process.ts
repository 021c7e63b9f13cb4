import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../../../core/clock.ts";
import { systemCodeOf } from "../../../../core/errors.ts";
import { linesOf } from "../../../../core/lines.ts";
import type { Log } from "../../../../core/log.ts";
import { AgentFault } from "./agent-fault.ts";
import { killStrays } from "./strays.ts";

const MIB = 1024 * 1024;
/** Of one message of a program. */
const LINE_BYTES = 4 * MIB;
/** Of all that it says: small updates that nobody is shown are many. */
const OUTPUT_BYTES = 64 * MIB;
/** What is written for a program that does not read. */
const UNREAD_BYTES = 4 * MIB;
const ERROR_LINE_CHARS = 300;
/** Between asking a program to end and ending it. */
const GRACE_MS = 300;
/** A process that was killed is gone by then, unless the kernel holds it. */
const GONE_MS = 2_000;

export type ProgramOptions = {
  /** The program and its arguments; no shell reads them. */
  command: readonly string[];
  /** What the operator passes on of the server's environment. */
  passed: Readonly<Record<string, string>>;
  clock: Clock;
  log: Log;
};

/**
 * A program that answers one prompt, in an empty folder of its own, which is its home, too. Of the server's environment it
 * has what the operator names. It leads a process group: whatever it starts ends with it, also what leaves the group.
 */
export class AgentProcess {
  readonly folder: string;
  readonly #options: ProgramOptions;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #gone = Promise.withResolvers<string>();
  #lastError = "";
  #ending: Promise<void> | undefined;

  private constructor(folder: string, options: ProgramOptions) {
    this.folder = folder;
    this.#options = options;
    const [program = "", ...args] = options.command;
    this.#child = spawn(program, args, { cwd: folder, env: bareEnv(folder, options), detached: true, stdio: "pipe" });
    living.add(this);
    this.#child.once("error", (error) => this.#gone.resolve(notRun(error)));
    this.#child.once("exit", (code, signal) => {
      this.#signalGroup("SIGKILL");
      this.#gone.resolve(code === null ? `it was ended by ${signal ?? "a signal"}` : `it ended with exit code ${code}`);
    });
    // Its end says what there is to say.
    this.#child.stdin.on("error", () => undefined);
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => this.#keepError(text));
  }

  /** Rejects with `AgentFault`. */
  static async start(options: ProgramOptions): Promise<AgentProcess> {
    endWithThisProcess();
    const folder = await mkdtemp(join(tmpdir(), "engine-agent-"));
    try {
      return new AgentProcess(folder, options);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw new AgentFault(notRun(error), { cause: error });
    }
  }

  /** What it says, line by line. Throws `AgentFault` when it says too much, and when it has ended. */
  async *lines(): AsyncGenerator<string> {
    yield* linesOf(atMost(this.#child.stdout), {
      maxLineBytes: LINE_BYTES,
      tooLong: () => new AgentFault(`it said a message of more than ${LINE_BYTES} bytes`),
    });
    const how = (await this.#goneWithin(GRACE_MS)) ?? "it closed its output";
    throw new AgentFault(this.#lastError === "" ? how : `${how}; its last line: ${this.#lastError}`);
  }

  /** Throws `AgentFault` where the program does not read. */
  write(line: string): void {
    if (this.#child.stdin.writableLength > UNREAD_BYTES) throw new AgentFault("it does not read what it is sent");
    if (this.#child.stdin.writable) this.#child.stdin.write(`${line}\n`);
  }

  /** Ends it with all that it started, and removes its folder. Never rejects; the second call waits for the first. */
  async end(): Promise<void> {
    this.#ending ??= this.#end();
    await this.#ending;
  }

  /** The same at once, for a process that ends itself and cannot wait. */
  static endAllNow(): void {
    for (const each of living) each.#signalGroup("SIGKILL");
    for (const { folder } of living) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }

  async #end(): Promise<void> {
    const { clock, log } = this.#options;
    try {
      this.#signalGroup("SIGTERM");
      await this.#goneWithin(GRACE_MS);
      this.#signalGroup("SIGKILL");
      await killStrays(this.folder);
      await this.#goneWithin(GONE_MS);
      for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) stream.destroy();
      await rm(this.folder, { recursive: true, force: true, maxRetries: 3 });
    } catch (error) {
      log.error(
        { err: error, atMs: clock.nowMs() },
        "a program of the agent could not be ended, or its folder not removed",
      );
    } finally {
      living.delete(this);
    }
  }

  /** How it ended; undefined when it has not by then. */
  async #goneWithin(ms: number): Promise<string | undefined> {
    const late = Promise.withResolvers<undefined>();
    const timer = this.#options.clock.after(ms, () => late.resolve(undefined));
    try {
      return await Promise.race([this.#gone.promise, late.promise]);
    } finally {
      timer.cancel();
    }
  }

  #signalGroup(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      if (systemCodeOf(error) !== "ESRCH") throw error;
    }
  }

  #keepError(text: string): void {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    this.#lastError = (lines.at(-1) ?? this.#lastError).slice(0, ERROR_LINE_CHARS);
  }
}

/** Where the program is, is the operator's matter. */
function notRun(error: unknown): string {
  return `the program of ENGINE_AGENT_COMMAND cannot be run: ${systemCodeOf(error) ?? "it is not a program"}`;
}

async function* atMost(output: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0;
  for await (const piece of output) {
    sizeBytes += piece.byteLength;
    if (sizeBytes > OUTPUT_BYTES) throw new AgentFault(`it said more than ${OUTPUT_BYTES} bytes`);
    yield piece;
  }
}

function bareEnv(folder: string, { passed }: ProgramOptions): Record<string, string> {
  const { PATH = "/usr/local/bin:/usr/bin:/bin", LANG = "C.UTF-8" } = process.env;
  return { LANG, ...passed, PATH, HOME: folder, TMPDIR: folder };
}

const living = new Set<AgentProcess>();
let isWatching = false;

/** However this process ends, short of SIGKILL, no program outlives it. */
function endWithThisProcess(): void {
  if (isWatching) return;
  isWatching = true;
  process.once("exit", () => AgentProcess.endAllNow());
}

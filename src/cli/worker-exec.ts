import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Clock } from "../core/clock.ts";
import { messageOf, systemCodeOf } from "../core/errors.ts";
import { isolateEnv } from "../core/isolate.ts";
import { JobFailure, type JobHandler, type RunningJob } from "../fabric/handler.ts";
import { FABRIC_LIMITS } from "../fabric/limits.ts";

/** `EX_TEMPFAIL` of sysexits.h: another attempt may do better. */
const TEMPORARY_FAILURE = 75;
/** Between asking a program to stop and ending it. */
export const KILL_AFTER_MS = 10_000;
/** Lines of standard error that a failure quotes. */
const QUOTED_LINES = 10;

/**
 * Runs a program for each job, without a shell: payload in, result out.
 *
 * It gets the payload as JSON on standard input, and `ENGINE_JOB_ID`, `_KIND`, `_ATTEMPT` and `_FENCE` in its
 * environment. What it writes to standard error are lines of the job's log; what it writes to standard output is the
 * result, JSON or else text. It ends with 0 when the job is done, with 75 when another attempt may do better, and with
 * anything else when it failed for good. Told to stop, it gets SIGTERM, and SIGKILL 10 s later; what it started dies with
 * it, for it leads a process group of its own.
 */
export class Programs {
  readonly #program: string;
  readonly #clock: Clock;
  readonly #children = new Set<ChildProcessWithoutNullStreams>();

  constructor(program: string, clock: Clock) {
    this.#program = program;
    this.#clock = clock;
  }

  handler(kind: string): JobHandler {
    return { kind, run: (job) => this.#run(job) };
  }

  /** Ends all that still run. */
  kill(): void {
    for (const child of this.#children) signalGroup(child, "SIGKILL");
  }

  async #run(job: RunningJob): Promise<unknown> {
    const child = this.#spawn(job);
    const { signal } = job;
    const stopped = this.#stopWith(child, signal);
    const errors = new ErrorLines(job);
    const output = new Output(() => signalGroup(child, "SIGKILL"));
    child.stderr.setEncoding("utf8").on("data", (text: string) => errors.push(text));
    child.stdout.on("data", (piece: Buffer) => output.push(piece));
    // A program need not read its payload.
    child.stdin.on("error", () => undefined).end(JSON.stringify(job.payload ?? null));
    try {
      const { code, killedBy } = await endOf(child);
      errors.end();
      if (signal.aborted) throw signal.reason;
      if (output.isTooLarge) throw new JobFailure({ error: `it wrote more than ${FABRIC_LIMITS.resultBytes} bytes` });
      if (code === 0) return output.value;
      throw new JobFailure({
        error: [killedBy === null ? `it ended with ${code}` : `it was ended by ${killedBy}`, ...errors.last].join("\n"),
        // A signal comes from outside: memory ran out, or somebody ended it.
        retryable: code === TEMPORARY_FAILURE || killedBy !== null,
      });
    } finally {
      stopped();
      this.#children.delete(child);
    }
  }

  #spawn({ id, kind, attempt, fence, traceContext }: RunningJob): ChildProcessWithoutNullStreams {
    const env = {
      ...isolateEnv(),
      ENGINE_JOB_ID: id,
      ENGINE_JOB_KIND: kind,
      ENGINE_JOB_ATTEMPT: String(attempt),
      ENGINE_JOB_FENCE: String(fence),
      ...(traceContext === undefined ? {} : { TRACEPARENT: traceContext }),
    };
    const child = spawn(this.#program, [], { env, detached: true, stdio: "pipe" });
    this.#children.add(child);
    return child;
  }

  /** Passes on that the job is to stop. Returns how to leave it. */
  #stopWith(child: ChildProcessWithoutNullStreams, signal: AbortSignal): () => void {
    let kill: { cancel(): void } | undefined;
    const onAbort = () => {
      signalGroup(child, "SIGTERM");
      kill = this.#clock.after(KILL_AFTER_MS, () => signalGroup(child, "SIGKILL"));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    return () => {
      signal.removeEventListener("abort", onAbort);
      kill?.cancel();
    };
  }
}

/** The first file of that name that may be run; undefined when there is none. */
export function findProgram(name: string, path: string): string | undefined {
  const candidates = name.includes("/") ? [name] : path.split(delimiter).map((folder) => join(folder, name));
  return candidates.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return statSync(file).isFile();
    } catch {
      return false;
    }
  });
}

type End = { code: number | null; killedBy: NodeJS.Signals | null };

/** Resolves when the program has ended, all that it wrote was read, and nothing that it started is left. */
function endOf(child: ChildProcessWithoutNullStreams): Promise<End> {
  return new Promise((resolve, reject) => {
    child.once("error", (error) => {
      // The node lacks it, or something else: another one may do better.
      reject(new JobFailure({ error: `the program cannot be run: ${messageOf(error)}`, retryable: true }));
    });
    child.once("exit", () => signalGroup(child, "SIGKILL"));
    child.once("close", (code, killedBy) => resolve({ code, killedBy }));
  });
}

function signalGroup({ pid }: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (systemCodeOf(error) !== "ESRCH") throw error;
  }
}

/** What a program writes to standard output, as far as it can be kept. */
class Output {
  readonly #pieces: Buffer[] = [];
  readonly #onTooLarge: () => void;
  #sizeBytes = 0;

  constructor(onTooLarge: () => void) {
    this.#onTooLarge = onTooLarge;
  }

  get isTooLarge(): boolean {
    return this.#sizeBytes > FABRIC_LIMITS.resultBytes;
  }

  push(piece: Buffer): void {
    if (this.isTooLarge) return;
    this.#sizeBytes += piece.length;
    this.#pieces.push(piece);
    if (this.isTooLarge) this.#onTooLarge();
  }

  /** JSON where it is, else the text; null for nothing. */
  get value(): unknown {
    const text = Buffer.concat(this.#pieces).toString("utf8").trim();
    if (text === "") return null;
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
}

/** What a program writes to standard error, line by line. */
class ErrorLines {
  readonly #job: RunningJob;
  readonly #last: string[] = [];
  #rest = "";

  constructor(job: RunningJob) {
    this.#job = job;
  }

  /** The last lines. */
  get last(): readonly string[] {
    return this.#last;
  }

  push(text: string): void {
    const lines = (this.#rest + text).split(/\r?\n/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#add(line);
    // A line without an end must not fill the memory.
    if (this.#rest.length > FABRIC_LIMITS.log.lineChars) this.end();
  }

  end(): void {
    const line = this.#rest;
    this.#rest = "";
    this.#add(line);
  }

  #add(line: string): void {
    if (line === "") return;
    const kept = line.slice(0, FABRIC_LIMITS.log.lineChars);
    this.#last.push(kept);
    if (this.#last.length > QUOTED_LINES) this.#last.shift();
    this.#job.log("info", kept);
  }
}

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Clock } from "../../core/clock.ts";
import { isolateFile, nodeProgram } from "../../core/isolate.ts";
import { visible } from "../../core/visible.ts";
import type { Confinement } from "../confinement/confinement.ts";
import { processEnv } from "../confinement/environment.ts";
import { UnreadableRows } from "./unreadable-rows.ts";

/**
 * A process that reads the file of a stranger: what crashes, hangs or fills the memory of a reader takes that process
 * alone. It has none of our secrets and is killed when nobody reads it any more. A server confines it besides, to the
 * folders that it is to read.
 */
export type ReaderOptions = {
  /** The source file of what it runs, its name as an isolate (`src/core/isolate.ts`), and what it is told. */
  source: URL;
  isolate: string;
  task: string;
  /** How messages begin: `x.parquet cannot be read as Parquet`. */
  problem: string;
  /** Data that it may have on Linux (RLIMIT_DATA), code not counted; no limit unless given. */
  dataBytes?: number;
  /** What the system keeps it in with. */
  confinement?: Confinement;
  /** The only folders of which it may open files, where it is confined. */
  readable?: readonly string[];
  /** Kills it, and has the reader fail with the signal's reason. */
  signal?: AbortSignal;
  /** Whether it is given standard input: the caller writes, or only holds it open to say that it lives. */
  hasInput?: boolean;
  /** After so long without any output, while somebody waits for it, it counts as hung. */
  silence?: { clock: Clock; mostMs: number };
  /** Our own name for the file, which no message is to have. */
  hiddenPath?: string;
};

/** Of what the process says, the most that is kept, and that is shown. */
const KEPT_CHARS = 4_000;
const REASON_CHARS = 500;

export class ReaderProcess {
  readonly child: ChildProcess;
  readonly #options: ReaderOptions;
  readonly #closed: Promise<[number | null, NodeJS.Signals | null]>;
  #said = "";

  constructor(options: ReaderOptions) {
    this.#options = options;
    const { source, isolate, task, dataBytes, confinement, readable = [], hasInput = false } = options;
    const own = [nodeProgram(), isolateFile(source), "--isolate", isolate, task];
    const node = confinement === undefined ? own : confinement.wrap(own, { readable, writable: [] });
    const [file = "", ...args] =
      dataBytes === undefined || process.platform === "win32" ? node : [...underLimit(dataBytes), ...node];
    this.child = spawn(file, args, {
      stdio: [hasInput ? "pipe" : "ignore", "pipe", "pipe"],
      // Many arenas would keep memory that nobody uses, and count against the limit.
      env: { ...processEnv(), MALLOC_ARENA_MAX: "4" },
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      if (this.#said.length < KEPT_CHARS) this.#said += text;
    });
    // It reads no further than it can; why not, its end says.
    this.child.stdin?.on("error", () => undefined);
    this.#closed = once(this.child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
    this.#closed.catch(() => undefined);
  }

  /** What it writes, as it comes. Fails with `UnreadableRows` when it does not end well. The process is gone then. */
  async *output(): AsyncGenerator<Uint8Array> {
    const { signal } = this.#options;
    const kill = (): void => void this.child.kill("SIGKILL");
    signal?.addEventListener("abort", kill, { once: true });
    try {
      signal?.throwIfAborted();
      yield* this.#untilSilent(this.child.stdout as AsyncIterable<Uint8Array>);
      const [code, killed] = await this.#closed;
      signal?.throwIfAborted();
      if (code !== 0) throw this.#failure(killed);
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", kill);
      kill();
    }
  }

  async *#untilSilent(output: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const { silence, problem } = this.#options;
    const pieces = output[Symbol.asyncIterator]();
    for (;;) {
      let isSilent = false;
      const timer = silence?.clock.after(silence.mostMs, () => {
        isSilent = true;
        this.child.kill("SIGKILL");
      });
      const piece = await pieces.next().finally(() => timer?.cancel());
      if (isSilent)
        throw new UnreadableRows(`${problem}: its reader gave no row for ${silence?.mostMs} ms`, { isCrash: true });
      if (piece.done === true) return;
      yield piece.value;
    }
  }

  #failure(killed: NodeJS.Signals | null): UnreadableRows {
    const { problem } = this.#options;
    if (killed !== null) return new UnreadableRows(`${problem}: its reader was ended by ${killed}`, { isCrash: true });
    const told = toldIn(this.#said);
    if (told !== undefined) return new UnreadableRows(told.message, told.line === undefined ? {} : { line: told.line });
    return new UnreadableRows(`${problem}: ${this.#reason() || "its reader failed"}`);
  }

  /** What it says, in one line and without our name for the file. */
  #reason(): string {
    const { hiddenPath } = this.#options;
    const said =
      hiddenPath === undefined
        ? this.#said
        : this.#said.replaceAll(`'${hiddenPath}'`, "it").replaceAll(hiddenPath, "it");
    const [first = ""] = said.trim().split("\n");
    return visible(first.slice(0, REASON_CHARS));
  }
}

/** What a reader of ours says on standard error, as JSON, where it knows the line. */
export type ToldFailure = { message: string; line?: number };

function toldIn(said: string): ToldFailure | undefined {
  if (!said.startsWith("{")) return undefined;
  try {
    const { message, line } = JSON.parse(said) as Partial<ToldFailure>;
    if (typeof message !== "string") return undefined;
    return typeof line === "number" ? { message, line } : { message };
  } catch {
    // Not one of ours, but a text that begins so.
    return undefined;
  }
}

/** `sh` sets the limits and becomes the process; where the system does not know one, killing must do. */
function underLimit(dataBytes: number): string[] {
  const kib = Math.ceil(dataBytes / 1024);
  return ["/bin/sh", "-c", `umask 077; ulimit -c 0; ulimit -d ${kib} 2>/dev/null; exec "$0" "$@"`];
}

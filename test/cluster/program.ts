import { execFileSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { systemClock } from "../../src/core/clock.ts";
import { signalProcess } from "../../src/core/signals.test-kit.ts";
import { launch } from "../../src/deploy/local/launch.ts";
import { serves } from "../../src/deploy/local/probe.ts";
import type { Description } from "../../src/deploy/local/programs.ts";

export type ProgramOptions = Pick<Description, "name" | "env" | "log" | "stopSignal" | "stopTimeoutMs"> & {
  /** What to run; asked at every start. */
  command: () => Description["command"];
  /** Whether it serves now; asked again and again until it says yes. */
  isReady: () => Promise<boolean>;
  /** A crash takes what it started along; unless given, those have to notice by themselves. */
  crashesWhole?: boolean;
};

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 25;
const SHOWN_LOG_CHARS = 4_000;

/**
 * A program of a cluster in the hands of a test, which kills it, freezes it and starts it again in its place. It is launched
 * and asked as by the supervisor of a deployment, which would not let anybody else do that.
 */
export class Program {
  readonly name: string;
  readonly #options: ProgramOptions;
  readonly #pids: number[] = [];
  #child: ChildProcess | undefined;

  constructor(options: ProgramOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** As a deployment describes it, but for what is given. */
  static of(described: Description, more: Partial<Pick<ProgramOptions, "command" | "crashesWhole">> = {}): Program {
    const isReady = () => serves(described.probe, systemClock);
    return new Program({ ...described, command: () => described.command, isReady, ...more });
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Of the process that runs; undefined when there is none. */
  get pid(): number | undefined {
    return this.isRunning ? this.#child?.pid : undefined;
  }

  /** Resolves when it serves; rejects with the end of its log when it ends or takes too long. */
  async start(): Promise<void> {
    const { command, env, log } = this.#options;
    const { child, begin } = launch({ command: command(), env, log });
    this.#child = endsWithThisProcess(child);
    if (child.pid !== undefined) this.#pids.push(child.pid);
    begin();
    await this.ready();
  }

  /** Resolves when it serves, such as after `SIGCONT`. */
  async ready(): Promise<void> {
    const { name, isReady } = this.#options;
    for (let waitedMs = 0; waitedMs < START_TIMEOUT_MS; waitedMs += POLL_MS) {
      if (!this.isRunning) throw new Error(`${name} ended while it started:\n${this.logEnd()}`);
      if (await isReady()) return;
      await delay(POLL_MS);
    }
    throw new Error(`${name} did not serve within ${START_TIMEOUT_MS} ms:\n${this.logEnd()}`);
  }

  /** Takes it and what it started off the processor, as a machine does that is frozen; what is sent to it waits. */
  pause(): void {
    this.#freeze();
  }

  /** Goes on after `pause`. */
  resume(): void {
    signalAll(this.#tree(), "SIGCONT");
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    const ended = this.#ended();
    // Its children are found by it: not after it.
    if (this.#options.crashesWhole === true) signalAll(this.#freeze(), "SIGKILL");
    else this.#signal("SIGKILL");
    await ended;
  }

  /** Ends it in order, and resolves to its exit code; one that does not end in time is killed, and that is an error. */
  async stop(): Promise<number | null> {
    const child = this.#child;
    const ended = this.#ended();
    // One that is paused hears of nothing else.
    this.resume();
    const { stopSignal, stopTimeoutMs } = this.#options;
    this.#signal(stopSignal);
    const inTime = await Promise.race([ended.then(() => true), delay(stopTimeoutMs, false, { ref: false })]);
    if (inTime) return child?.exitCode ?? null;
    await this.kill();
    throw new Error(`${this.name} did not end within ${stopTimeoutMs} ms:\n${this.logEnd()}`);
  }

  /** What its log says last. */
  logEnd(): string {
    return readFileSync(this.#options.log, "utf8").slice(-SHOWN_LOG_CHARS);
  }

  /** Processes that are left of those that it started in any of its lives, itself included. */
  survivors(): number[] {
    return processes().flatMap(({ pid, group }) => (this.#pids.includes(group) ? [pid] : []));
  }

  async #ended(): Promise<void> {
    if (this.isRunning && this.#child !== undefined) await once(this.#child, "exit");
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.isRunning) this.#child?.kill(signal);
  }

  /** It first, so that it starts nothing meanwhile. */
  #freeze(): number[] {
    this.#signal("SIGSTOP");
    const tree = this.#tree();
    signalAll(tree, "SIGSTOP");
    return tree;
  }

  /** It and all that it started. A process group would not do: each child of PostgreSQL leads one of its own. */
  #tree(): number[] {
    const pid = this.isRunning ? this.#child?.pid : undefined;
    return pid === undefined ? [] : treeOf(pid);
  }
}

type Process = { pid: number; parent: number; group: number };

function processes(): Process[] {
  const text = execFileSync("ps", ["-A", "-o", "pid=,ppid=,pgid="], { encoding: "utf8" });
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [pid = 0, parent = 0, group = 0] = line.trim().split(/\s+/).map(Number);
      return { pid, parent, group };
    });
}

function treeOf(root: number): number[] {
  const all = processes();
  const tree = [root];
  // Grows while it is walked.
  for (const one of tree) tree.push(...all.flatMap(({ pid, parent }) => (parent === one ? [pid] : [])));
  return tree;
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      signalProcess(pid, signal);
    } catch (error) {
      // It has ended since it was listed.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

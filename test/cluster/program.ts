import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** A server as a process of its own, that can be stopped, killed, and started again in its place. */
export type ProgramOptions = {
  name: string;
  command: readonly [string, ...string[]];
  env: Readonly<Record<string, string>>;
  /** Takes what it prints, run after run. */
  logFile: string;
  /** Whether it serves now; asked again and again until it says yes. */
  isReady: () => Promise<boolean>;
  /** How it is told to end; `SIGTERM` unless given. */
  stopSignal?: NodeJS.Signals;
};

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 30_000;
const POLL_MS = 25;
const SHOWN_LOG_CHARS = 4_000;

export class Program {
  readonly name: string;
  readonly #options: ProgramOptions;
  #child: ChildProcess | undefined;

  constructor(options: ProgramOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves when it serves; rejects with the end of its log when it ends or takes too long. */
  async start(): Promise<void> {
    const { command, env, logFile } = this.#options;
    const log = openSync(logFile, "a");
    const [file, ...args] = command;
    // In a group of its own: a terminal's Ctrl-C is for whoever started it, who knows the order in which to end things.
    this.#child = spawn(file, args, { env, stdio: ["ignore", log, log], detached: true });
    closeSync(log);
    await this.ready();
  }

  /** Resolves when it serves, such as after `SIGCONT`. */
  async ready(): Promise<void> {
    const { name, isReady } = this.#options;
    for (let waitedMs = 0; waitedMs < START_TIMEOUT_MS; waitedMs += POLL_MS) {
      if (!this.isRunning) throw new Error(`${name} ended while it started:\n${this.#logEnd()}`);
      if (await isReady()) return;
      await delay(POLL_MS);
    }
    throw new Error(`${name} did not serve within ${START_TIMEOUT_MS} ms:\n${this.#logEnd()}`);
  }

  signal(signal: NodeJS.Signals): void {
    if (this.isRunning) this.#child?.kill(signal);
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    const ended = this.#ended();
    this.signal("SIGKILL");
    await ended;
  }

  /** Ends it in order; one that does not end in time is killed, and that is an error. */
  async stop(): Promise<void> {
    const ended = this.#ended();
    // One that was stopped hears of nothing else.
    this.signal("SIGCONT");
    this.signal(this.#options.stopSignal ?? "SIGTERM");
    const inTime = await Promise.race([ended.then(() => true), delay(STOP_TIMEOUT_MS, false, { ref: false })]);
    if (inTime) return;
    await this.kill();
    throw new Error(`${this.name} did not end within ${STOP_TIMEOUT_MS} ms:\n${this.#logEnd()}`);
  }

  async #ended(): Promise<void> {
    if (this.isRunning && this.#child !== undefined) await once(this.#child, "exit");
  }

  #logEnd(): string {
    return readFileSync(this.#options.logFile, "utf8").slice(-SHOWN_LOG_CHARS);
  }
}

/** A port of the loopback interface that nobody listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Whether an address answers GET with a status of success. */
export async function answers(url: string): Promise<boolean> {
  try {
    const { ok, body } = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    await body?.cancel();
    return ok;
  } catch {
    // Not yet.
    return false;
  }
}

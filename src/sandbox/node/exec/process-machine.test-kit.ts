import { spawn, type ChildProcess } from "node:child_process";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { signalGroup } from "../../../core/signals.test-kit.ts";
import { RuntimeError, type Exec, type ExecOutput, type ExecRequest, type Machine } from "../../runtime/runtime.ts";

/**
 * A machine whose commands are processes of this computer: real output, input, exit codes and ports, and nothing that
 * isolates them. What they write is kept, as a supervisor does, whichever process of a node asks.
 */
export class ProcessMachine implements Machine {
  readonly id = "machine";
  readonly folder = "/";
  readonly initPid = process.pid;
  readonly rootOnHost = undefined;
  readonly ended = new Promise<never>(() => undefined);
  readonly execs = new Map<string, ProcessExec>();
  isPaused = false;

  async exec(request: ExecRequest): Promise<Exec> {
    const known = this.execs.get(request.id);
    if (known !== undefined) return known;
    const exec = new ProcessExec(request);
    this.execs.set(request.id, exec);
    await exec.begun;
    return exec;
  }

  async attach(execId: string): Promise<Exec | undefined> {
    return this.execs.get(execId);
  }

  async pause(): Promise<void> {
    this.isPaused = true;
  }

  async resume(): Promise<void> {
    this.isPaused = false;
  }

  async stop(): Promise<void> {
    for (const exec of this.execs.values()) await exec.kill("SIGKILL");
  }

  async stats() {
    const bytes = {
      memoryUsedBytes: 2 ** 20,
      memoryLimitBytes: 2 ** 21,
      diskUsedBytes: 2 ** 22,
      diskLimitBytes: 2 ** 23,
    };
    return { cpuUsagePercent: 12.5, ...bytes, processes: 1 };
  }

  async renew(): Promise<void> {}

  connect(port: number): Promise<Duplex> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      socket.once("connect", () => resolve(socket));
      socket.once("error", () => reject(new RuntimeError("refused", "nobody listens on the port")));
    });
  }

  onEgress(): void {}

  onLine(): void {}
}

export class ProcessExec implements Exec {
  readonly id: string;
  readonly begun: Promise<void>;
  /** Who reads its output now. */
  readers = 0;
  readonly sizes: { columns: number; rows: number }[] = [];
  readonly #child: ChildProcess;
  readonly #written = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  #end: Extract<ExecOutput, { type: "exit" }> | undefined;
  #changed = Promise.withResolvers<void>();
  #timedOut = false;

  constructor({ id, argv: [program = "", ...args], cwd, env, timeoutMs, tty }: ExecRequest) {
    this.id = id;
    this.#child = spawn(program, args, {
      cwd: cwd ?? "/",
      env: { PATH: "/usr/bin:/bin", ...env },
      stdio: "pipe",
      detached: true,
      ...(timeoutMs !== undefined && { timeout: timeoutMs, killSignal: "SIGKILL" }),
    });
    if (tty !== undefined) this.sizes.push(tty);
    const startedMs = performance.now();
    this.begun = new Promise((resolve, reject) => {
      this.#child.once("spawn", resolve);
      this.#child.once("error", (error) => reject(new RuntimeError("not_runnable", error.message)));
    });
    for (const name of ["stdout", "stderr"] as const) {
      this.#child[name]?.on("data", (bytes: Buffer) => {
        this.#written[name] = Buffer.concat([this.#written[name], bytes]);
        this.#tell();
      });
    }
    this.#child.stdin?.on("error", () => undefined);
    this.#child.once("close", (code, signal) => {
      this.#timedOut = timeoutMs !== undefined && performance.now() - startedMs >= timeoutMs;
      this.#end = { type: "exit", exitCode: code ?? undefined, signal: signal ?? undefined, timedOut: this.#timedOut };
      this.#tell();
    });
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  async *output(from = { stdout: 0, stderr: 0 }, signal?: AbortSignal): AsyncGenerator<ExecOutput> {
    const had = { ...from };
    signal?.addEventListener("abort", () => this.#tell());
    this.readers++;
    try {
      for (;;) {
        const changed = this.#changed.promise;
        const end = this.#end;
        for (const type of ["stdout", "stderr"] as const) {
          const bytes = this.#written[type].subarray(had[type]);
          had[type] += bytes.length;
          if (bytes.length > 0) yield { type, bytes };
        }
        if (signal?.aborted === true) throw new Error("given up");
        if (end !== undefined) {
          yield end;
          return;
        }
        await changed;
      }
    } finally {
      this.readers--;
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#child.stdin?.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }

  async endInput(): Promise<void> {
    this.#child.stdin?.end();
  }

  async resize(size: { columns: number; rows: number }): Promise<void> {
    this.sizes.push(size);
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const { pid } = this.#child;
    if (pid === undefined || this.hasEnded) return;
    try {
      signalGroup(pid, signal);
    } catch (error) {
      // It ended meanwhile.
      if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
    }
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

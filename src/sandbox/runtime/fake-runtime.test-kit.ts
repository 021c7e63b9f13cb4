import type { Duplex } from "node:stream";
import type { Clock, TimerHandle } from "../../core/clock.ts";
import { FakeExec } from "./fake-exec.test-kit.ts";
import {
  RuntimeError,
  type Exec,
  type ExecRequest,
  type Machine,
  type MachineEnd,
  type MachineSpec,
  type MachineStats,
  type Runtime,
  type RuntimeAbilities,
} from "./runtime.ts";

export type FakeVerb =
  | "create"
  | "start"
  | "restart"
  | "adopt"
  | "remove"
  | "exec"
  | "pause"
  | "resume"
  | "stop"
  | "renew"
  | "stats";

export const FAKE_GRACE_MS = 2_000;

/** What is on the computer, whichever process of a node looks: machines with their supervisors, disks, volumes. */
export class FakeHost {
  readonly clock: Clock;
  readonly machines = new Map<string, FakeMachine>();
  readonly disks = new Map<string, { files: Map<string, string> }>();
  /** When each was last used (ms since 1970). */
  readonly volumes = new Map<string, number>();
  /** Consulted before each call, by whichever process it is made; may throw, and may take its time. */
  before: (verb: FakeVerb, id: string) => Promise<void> | void = () => undefined;
  /** What is run for a command in place of a script, where that is something. */
  execOf: (request: ExecRequest) => Exec | undefined = () => undefined;
  /** Machines that stood still, or ran, without a lease for longer than their supervisor lets them. */
  readonly outlived: string[] = [];

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Everything that is here of any machine: ids. */
  get left(): string[] {
    return [...new Set([...this.machines.keys(), ...this.disks.keys()])];
  }
}

/** Machines in memory, as the runtime port has them. `process` is what is lost when a node dies. */
export class FakeRuntime implements Runtime {
  readonly name = "bubblewrap";
  readonly abilities: RuntimeAbilities = {
    cpu: true,
    memory: true,
    processes: true,
    disk: true,
    pause: true,
    network: true,
  };
  readonly volumes: Runtime["volumes"];
  readonly #host: FakeHost;
  #isClosed = false;

  constructor(host: FakeHost) {
    this.#host = host;
    this.volumes = {
      open: async (key) => {
        host.volumes.set(key, host.clock.nowMs());
        return `/volumes/${key}`;
      },
      touch: async (key) => void (host.volumes.has(key) && host.volumes.set(key, host.clock.nowMs())),
      unusedSince: async (atMs) => [...host.volumes].flatMap(([key, usedAtMs]) => (usedAtMs < atMs ? [key] : [])),
      remove: async (key) => void host.volumes.delete(key),
    };
  }

  /** As when the process dies: nothing that it was doing goes on, and nobody hears of it. */
  kill(): void {
    this.#isClosed = true;
  }

  images(): readonly string[] {
    return ["host"];
  }

  async prepareImage(): Promise<void> {}

  async loadImage(): Promise<() => void> {
    return () => undefined;
  }

  async create(spec: MachineSpec): Promise<Machine> {
    await this.call("create", spec.id, () => {
      if (this.#host.left.includes(spec.id)) throw new RuntimeError("failed", `${spec.id} is there already`);
      this.#host.disks.set(spec.id, { files: new Map() });
    });
    try {
      // A process that dies here leaves half a machine.
      return await this.call("start", spec.id, () => this.#start(spec));
    } catch (error) {
      this.#host.disks.delete(spec.id);
      throw error;
    }
  }

  restart(spec: MachineSpec): Promise<Machine> {
    return this.call("restart", spec.id, () => {
      if (!this.#host.disks.has(spec.id)) throw new RuntimeError("failed", `${spec.id} has no disk`);
      if (this.#host.machines.has(spec.id)) throw new RuntimeError("failed", `${spec.id} runs`);
      return this.#start(spec);
    });
  }

  adopt(id: string): Promise<Machine | undefined> {
    return this.call("adopt", id, () => {
      const machine = this.#host.machines.get(id);
      return machine === undefined ? undefined : new FakeHandle(this, machine);
    });
  }

  remove(id: string): Promise<void> {
    return this.call("remove", id, () => {
      this.#host.machines.get(id)?.end({ cause: "stopped" });
      this.#host.disks.delete(id);
    });
  }

  async openStopped(): Promise<undefined> {
    return undefined;
  }

  async openHelperLimits(): Promise<readonly string[]> {
    return [];
  }

  async closeHelperLimits(): Promise<void> {}

  async list(): Promise<string[]> {
    return this.#host.left;
  }

  warm(): void {}

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  /** A call of this process: of one that has died it does nothing, and never ends. */
  async call<T>(verb: FakeVerb, id: string, run: () => T): Promise<T> {
    if (this.#isClosed) return await new Promise<never>(() => undefined);
    await this.#host.before(verb, id);
    if (this.#isClosed) return await new Promise<never>(() => undefined);
    return run();
  }

  #start(spec: MachineSpec): Machine {
    const machine = new FakeMachine(this.#host, spec);
    this.#host.machines.set(spec.id, machine);
    return new FakeHandle(this, machine);
  }
}

/** A machine with its supervisor: it lives on when the node's process does not. */
export class FakeMachine {
  readonly spec: MachineSpec;
  readonly ended = Promise.withResolvers<MachineEnd>();
  readonly execs = new Map<string, Exec>();
  readonly listeners = new Set<(line: { stream: "stdout" | "stderr"; line: string }) => void>();
  readonly lossListeners = new Set<(lines: number) => void>();
  readonly host: FakeHost;
  isPaused = false;
  isEnded = false;
  #isFrozenForLease = false;
  #lease: TimerHandle | undefined;
  readonly #deadline: TimerHandle | undefined;

  constructor(host: FakeHost, spec: MachineSpec) {
    this.host = host;
    this.spec = spec;
    this.renew(spec.leaseMs);
    if (spec.deadlineMs !== undefined) {
      this.#deadline = host.clock.after(spec.deadlineMs, () => this.end({ cause: "deadline" }));
    }
  }

  renew(leaseMs: number): void {
    if (this.isEnded) return;
    this.#lease?.cancel();
    if (this.#isFrozenForLease) this.isPaused = false;
    this.#isFrozenForLease = false;
    this.#lease = this.host.clock.after(leaseMs, () => {
      if (!this.isPaused) this.#isFrozenForLease = true;
      this.isPaused = true;
      this.#lease = this.host.clock.after(FAKE_GRACE_MS, () => this.end({ cause: "lease" }));
    });
  }

  end(end: MachineEnd): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.#lease?.cancel();
    this.#deadline?.cancel();
    this.host.machines.delete(this.spec.id);
    if (!this.spec.keepsDisk) this.host.disks.delete(this.spec.id);
    for (const exec of this.execs.values()) void exec.kill("SIGKILL");
    this.ended.resolve(end);
  }
}

/** A machine as one process of a node has it. */
class FakeHandle implements Machine {
  readonly initPid = 1;
  readonly rootOnHost = undefined;
  readonly ended: Promise<MachineEnd>;
  readonly #runtime: FakeRuntime;
  readonly #machine: FakeMachine;

  constructor(runtime: FakeRuntime, machine: FakeMachine) {
    this.#runtime = runtime;
    this.#machine = machine;
    this.ended = machine.ended.promise;
  }

  get id(): string {
    return this.#machine.spec.id;
  }

  get folder(): string {
    return `/machines/${this.id}`;
  }

  get isPaused(): boolean {
    return this.#machine.isPaused;
  }

  exec(request: ExecRequest): Promise<Exec> {
    return this.#call("exec", () => {
      const { execs, host } = this.#machine;
      const exec = execs.get(request.id) ?? host.execOf(request) ?? new FakeExec(host.clock, request);
      execs.set(request.id, exec);
      return exec;
    });
  }

  async attach(execId: string): Promise<Exec | undefined> {
    return this.#machine.execs.get(execId);
  }

  pause(): Promise<void> {
    return this.#call("pause", () => void (this.#machine.isPaused = true));
  }

  resume(): Promise<void> {
    return this.#call("resume", () => void (this.#machine.isPaused = false));
  }

  stop(): Promise<void> {
    return this.#runtime.call("stop", this.id, () => this.#machine.end({ cause: "stopped" }));
  }

  stats(): Promise<MachineStats> {
    return this.#call("stats", () => ({
      cpuUsagePercent: 0,
      memoryUsedBytes: 2 ** 20,
      memoryLimitBytes: this.#machine.spec.limits.memoryMb * 2 ** 20,
      diskUsedBytes: 2 ** 20,
      diskLimitBytes: this.#machine.spec.limits.diskMb * 2 ** 20,
      processes: 1,
    }));
  }

  renew(leaseMs: number): Promise<void> {
    return this.#call("renew", () => this.#machine.renew(leaseMs));
  }

  connect(): Promise<Duplex> {
    return Promise.reject(new RuntimeError("refused", "nobody listens"));
  }

  onEgress(): void {}

  onLine(
    listener: (line: { stream: "stdout" | "stderr"; line: string }) => void,
    onLost: (lines: number) => void = () => undefined,
  ): void {
    this.#machine.listeners.add(listener);
    this.#machine.lossListeners.add(onLost);
  }

  #call<T>(verb: FakeVerb, run: () => T): Promise<T> {
    return this.#runtime.call(verb, this.id, () => {
      if (this.#machine.isEnded) throw new RuntimeError("not_running", "the machine has ended");
      return run();
    });
  }
}

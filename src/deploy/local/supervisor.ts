import { pause, type Clock } from "../../core/clock.ts";
import { Backoff } from "../../core/backoff.ts";
import { messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Random } from "../../core/random.ts";
import { launch } from "./launch.ts";
import { LOG_MAX_BYTES, trimLog } from "./log-file.ts";
import { serves } from "./probe.ts";
import { identityOf, isAlive, signal, type KnownProcess } from "./process-identity.ts";
import type { Desired, ProcessState, ProgramSpec, SupervisorState } from "./state.ts";

/**
 * Keeps the programs of a local deployment running. It can end at any time: programs are no part of it, and the next
 * supervisor finds them by process id and start time in the state that this one wrote before it let them begin.
 */
export type SupervisorDeps = {
  clock: Clock;
  random: Random;
  log: Log;
  version: string;
  readDesired: () => Promise<Desired | undefined>;
  readState: () => Promise<SupervisorState | undefined>;
  writeState: (state: SupervisorState) => Promise<void>;
  /** The file that `log` goes to, where it is one. */
  ownLog?: string;
  /** Ends the supervisor, and nothing that it watches. */
  stopped: AbortSignal;
};

/** While something starts, ends or is not healthy. */
const BUSY_STEP_MS = 100;
/** Otherwise; the end of a program that this supervisor started wakes it at once. */
const IDLE_STEP_MS = 1_000;
const TRIM_EVERY_MS = 10_000;
const RESTART_WAIT = { firstMs: 250, mostMs: 15_000 };
/** A program that ran for so long starts without a wait when it ends. */
const STABLE_MS = 20_000;

/** Edges ask a peer that was away for its health every 2.5 s at most, and wait 2 s for the answer: then they know. */
const NOTICED_MS = 5_000;

/** PostgreSQL ends by it without waiting for its clients, and servers drain. */
const UNLISTED_STOP = { stopSignal: "SIGINT", stopTimeoutMs: 60_000 } as const;

/** What the supervisor knows of a program besides its state on disk. */
type Watched = {
  backoff: Backoff;
  startedAtMs: number;
  isHealthy: boolean;
  healthySinceMs: number;
  notBeforeMs: number;
  stopping: { untilMs: number } | undefined;
};

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #watched = new Map<string, Watched>();
  #state: SupervisorState;
  #written = "";
  #trimAtMs = 0;
  /** Ends the pause between two steps. */
  #wake = new AbortController();

  private constructor(deps: SupervisorDeps, before: SupervisorState | undefined, self: KnownProcess) {
    this.#deps = deps;
    const { processes = {}, failures = {}, settled = 0 } = before ?? {};
    this.#state = { format: 1, supervisor: { ...self, version: deps.version }, settled, processes, failures };
  }

  /** Runs until the deployment is stopped, or this process is. */
  static async run(deps: SupervisorDeps): Promise<void> {
    const identity = identityOf(process.pid);
    if (identity === undefined) throw new Error("this process has no start time");
    const supervisor = new Supervisor(deps, await deps.readState(), { pid: process.pid, identity });
    deps.log.info({ adopted: Object.keys(supervisor.#state.processes) }, "the supervisor starts");
    const onStopped = () => supervisor.#wake.abort();
    deps.stopped.addEventListener("abort", onStopped, { once: true });
    while (!deps.stopped.aborted) {
      const desired = await deps.readDesired();
      if (desired === undefined) return;
      supervisor.#wake = new AbortController();
      const found = await supervisor.#step(desired);
      await supervisor.#save();
      if (found === "ended") return;
      if (deps.stopped.aborted) return;
      await pause(deps.clock, found === "idle" ? IDLE_STEP_MS : BUSY_STEP_MS, supervisor.#wake.signal);
    }
  }

  async #save(): Promise<void> {
    const text = JSON.stringify(this.#state);
    if (text === this.#written) return;
    await this.#deps.writeState(this.#state);
    this.#written = text;
  }

  /** Resolves to `ended` when everything has ended that was to end, and to `idle` when nothing is left to do. */
  async #step(desired: Desired): Promise<"busy" | "idle" | "ended"> {
    const programs = [...desired.programs].sort((a, b) => a.rank - b.rank);
    for (const name of Object.keys(this.#state.processes)) this.#notice(name);
    await this.#trimLogs(programs);
    if (!desired.isRunning) return this.#stopAll(programs) && this.#stopUnlisted(programs) ? "ended" : "busy";
    await this.#probe(programs.filter(({ name }) => this.#isRunning(name) && !this.#watch(name).isHealthy));
    await this.#startMissing(programs);
    this.#roll(programs);
    if (!this.#isSettled(programs)) return "busy";
    this.#state.settled = desired.generation;
    return this.#stopUnlisted(programs) ? "idle" : "busy";
  }

  #isSettled(programs: readonly ProgramSpec[]): boolean {
    return programs.every(
      ({ name, hash }) => this.#state.processes[name]?.hash === hash && this.#watch(name).isHealthy,
    );
  }

  async #trimLogs(programs: readonly ProgramSpec[]): Promise<void> {
    const { clock, log, ownLog } = this.#deps;
    if (clock.monotonicMs() < this.#trimAtMs) return;
    this.#trimAtMs = clock.monotonicMs() + TRIM_EVERY_MS;
    for (const file of [...programs.map((program) => program.log), ...(ownLog === undefined ? [] : [ownLog])]) {
      try {
        await trimLog(file, LOG_MAX_BYTES);
      } catch (error) {
        log.warn({ file, err: error }, "a log could not be rotated");
      }
    }
  }

  /** Sees what has ended, and ends for good what does not end by itself. */
  #notice(name: string): void {
    const known = this.#state.processes[name];
    if (known === undefined) return;
    const watch = this.#watch(name);
    const { clock, log } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (isAlive(known)) {
      if (watch.stopping !== undefined && nowMs > watch.stopping.untilMs) signal(known, "SIGKILL");
      return;
    }
    delete this.#state.processes[name];
    watch.isHealthy = false;
    if (watch.stopping !== undefined) {
      watch.stopping = undefined;
      watch.notBeforeMs = nowMs;
      return;
    }
    if (nowMs - watch.startedAtMs > STABLE_MS) watch.backoff.reset();
    watch.notBeforeMs = nowMs + watch.backoff.next();
    this.#state.failures[name] = `ended by itself after ${Math.round((nowMs - watch.startedAtMs) / 1000)} s`;
    log.warn({ program: name, pid: known.pid, waitMs: Math.round(watch.notBeforeMs - nowMs) }, "a program ended");
  }

  async #probe(programs: readonly ProgramSpec[]): Promise<void> {
    await Promise.all(
      programs.map(async ({ name, probe }) => {
        const isHealthy = await serves(probe, this.#deps.clock);
        if (!isHealthy || !this.#isRunning(name)) return;
        const watch = this.#watch(name);
        watch.isHealthy = true;
        watch.healthySinceMs = this.#deps.clock.monotonicMs();
        delete this.#state.failures[name];
        this.#deps.log.info({ program: name }, "a program serves");
      }),
    );
  }

  /** Those of the lowest rank that does not serve yet; those of a rank together. */
  async #startMissing(programs: readonly ProgramSpec[]): Promise<void> {
    const waiting = programs.find(({ name }) => !this.#watch(name).isHealthy);
    if (waiting === undefined) return;
    const nowMs = this.#deps.clock.monotonicMs();
    for (const program of programs) {
      if (program.rank > waiting.rank) return;
      if (!this.#isRunning(program.name) && this.#watch(program.name).notBeforeMs <= nowMs) await this.#start(program);
    }
  }

  /** The program begins when its process id is on disk, and not at all when the supervisor is killed before that. */
  async #start(program: ProgramSpec): Promise<void> {
    const { clock, log, version } = this.#deps;
    const { name, hash } = program;
    const watch = this.#watch(name);
    watch.startedAtMs = clock.monotonicMs();
    try {
      const { child, begin } = launch(program);
      child.on("error", (error) => log.error({ program: name, err: error }, "a program could not be started"));
      child.once("exit", () => this.#wake.abort());
      child.unref();
      const identity = child.pid === undefined ? undefined : identityOf(child.pid);
      if (child.pid === undefined || identity === undefined) {
        watch.notBeforeMs = watch.startedAtMs + watch.backoff.next();
        return;
      }
      const restarts = (this.#restarts.get(name) ?? -1) + 1;
      this.#restarts.set(name, restarts);
      this.#state.processes[name] = { pid: child.pid, identity, hash, version, restarts };
      await this.#save();
      begin();
      log.info({ program: name, pid: child.pid }, "a program starts");
    } catch (error) {
      watch.notBeforeMs = watch.startedAtMs + watch.backoff.next();
      this.#state.failures[name] = messageOf(error);
      throw error;
    }
  }

  /** One program with other settings or of another version at a time, while all others serve. */
  #roll(programs: readonly ProgramSpec[]): void {
    const stale = programs.filter(({ name, hash }) => {
      const known = this.#state.processes[name];
      return known !== undefined && known.hash !== hash;
    });
    if (stale.length === 0 || programs.some(({ name }) => this.#watch(name).stopping !== undefined)) return;
    // One that does not serve has nothing to lose.
    const next =
      stale.find(({ name }) => !this.#watch(name).isHealthy) ??
      (programs.every(({ name }) => this.#watch(name).isHealthy)
        ? stale.find(({ name }) => this.#peersAreNoticed(name, programs))
        : undefined);
    if (next === undefined) return;
    this.#stop(next);
  }

  /** Whether edges know that the others of its role serve. */
  #peersAreNoticed(name: string, programs: readonly ProgramSpec[]): boolean {
    const knownBeforeMs = this.#deps.clock.monotonicMs() - NOTICED_MS;
    const peers = programs.filter((other) => other.name !== name && roleOf(other.name) === roleOf(name));
    return peers.every((peer) => this.#watch(peer.name).healthySinceMs <= knownBeforeMs);
  }

  #stop({ name, stopSignal, stopTimeoutMs }: Pick<ProgramSpec, "name" | "stopSignal" | "stopTimeoutMs">): void {
    const known = this.#state.processes[name];
    const watch = this.#watch(name);
    if (known === undefined || watch.stopping !== undefined) return;
    watch.stopping = { untilMs: this.#deps.clock.monotonicMs() + stopTimeoutMs };
    watch.isHealthy = false;
    this.#deps.log.info({ program: name, pid: known.pid }, "a program is stopped");
    signal(known, stopSignal);
  }

  /** Those of the highest rank first. Returns whether all have ended. */
  #stopAll(programs: readonly ProgramSpec[]): boolean {
    const running = programs.filter(({ name }) => this.#isRunning(name));
    const highest = running.at(-1)?.rank;
    for (const program of running) if (program.rank === highest) this.#stop(program);
    return running.length === 0;
  }

  /** What is no part of the deployment any more, after its last user. Returns whether there is nothing of that. */
  #stopUnlisted(programs: readonly ProgramSpec[]): boolean {
    const listed = new Set(programs.map(({ name }) => name));
    const left = Object.keys(this.#state.processes).filter((name) => !listed.has(name));
    for (const name of left) this.#stop({ name, ...UNLISTED_STOP });
    return left.length === 0;
  }

  #isRunning(name: string): boolean {
    return this.#state.processes[name] !== undefined;
  }

  readonly #restarts = new Map<string, number>();

  #watch(name: string): Watched {
    const found = this.#watched.get(name);
    if (found !== undefined) return found;
    const made: Watched = {
      backoff: new Backoff({ ...RESTART_WAIT, random: this.#deps.random }),
      startedAtMs: this.#deps.clock.monotonicMs(),
      isHealthy: false,
      healthySinceMs: 0,
      notBeforeMs: 0,
      stopping: undefined,
    };
    this.#watched.set(name, made);
    return made;
  }
}

function roleOf(name: string): string {
  return name.replace(/-\d+$/, "");
}

/** Whether the supervisor of that state still runs. */
export function isSupervised(state: SupervisorState | undefined): boolean {
  return state !== undefined && isAlive(state.supervisor);
}

/** Those processes of a state that run, by name. */
export function runningOf(state: SupervisorState | undefined): ReadonlyMap<string, ProcessState> {
  return new Map(Object.entries(state?.processes ?? {}).filter(([, known]) => isAlive(known)));
}

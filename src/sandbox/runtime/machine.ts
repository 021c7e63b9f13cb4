import type { Duplex } from "node:stream";
import { type Clock, pause } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { CgroupStats } from "./cgroups/cgroups-controllers.ts";
import type { Cgroup } from "./cgroups/cgroups.ts";
import { diskUsage } from "./disks.ts";
import { EgressSocket } from "./egress-socket.ts";
import { commandEnv } from "./environment.ts";
import { SupervisedExec } from "./exec.ts";
import { type MachineFolder, type MachineRecord, endOf } from "./folder.ts";
import {
  type Exec,
  type ExecRequest,
  type HostRoot,
  type Machine,
  type MachineEnd,
  type MachineStats,
  RuntimeError,
} from "./runtime.ts";
import { PROXY_PORT } from "../contract/spec.ts";
import { SupervisorClient, openStream } from "./supervisor-client.ts";
import { killSupervisor } from "./supervisor-start.ts";

export type MachineParts = {
  id: string;
  folder: MachineFolder;
  record: MachineRecord;
  cgroup: Cgroup;
  /** Of a machine with a kernel of its own: the host's id that is root inside. */
  rootOnHost: { firstHostId: number } | undefined;
  clock: Clock;
  log: Log;
  /** Called once, after the end: takes apart what no process needs any more. */
  release: () => Promise<void>;
};

type Line = { stream: "stdout" | "stderr"; line: string };

/** How long a supervisor has to end its machine before that is done by force. */
const STOP_TIMEOUT_MS = 15_000;
/** Of CPU time, between two looks; a shorter time says little. */
const SAMPLE_MS = 100;

/** A machine by the connection to its supervisor. */
export class SupervisedMachine implements Machine {
  readonly id: string;
  readonly ended: Promise<MachineEnd>;
  readonly parts: MachineParts;
  readonly #settleEnd: (end: MachineEnd) => void;
  readonly #released = new AbortController();
  #client: SupervisorClient | undefined;
  #initPid = 0;
  #isPaused = false;
  /** Nothing is to be asked of its supervisor any more. */
  #isOver = false;
  #onLine: ((line: Line) => void) | undefined;
  #onLost: ((lines: number) => void) | undefined;
  #egress: EgressSocket | undefined;
  #sample: { atMs: number; cpuUsageUs: number; percent: number } | undefined;

  private constructor(parts: MachineParts) {
    this.id = parts.id;
    this.parts = parts;
    const { promise, resolve } = Promise.withResolvers<MachineEnd>();
    this.ended = promise;
    this.#settleEnd = resolve;
  }

  /** Undefined when there is no supervisor in the folder, or its machine has ended. */
  static async open(parts: MachineParts): Promise<SupervisedMachine | undefined> {
    const machine = new SupervisedMachine(parts);
    const client = await SupervisorClient.open(parts.folder.path, {
      onLine: (stream, line) => machine.#onLine?.({ stream, line }),
      onLost: (lines) => machine.#onLost?.(lines),
      onEnd: (end) => void machine.#end(end),
    });
    if (client === undefined) return undefined;
    try {
      const [pid = "", isPaused = "", cause] = await client.request("hello");
      if (cause === undefined) {
        machine.#client = client;
        machine.#initPid = Number(pid);
        machine.#isPaused = isPaused === "1";
        return machine;
      }
    } catch (error) {
      // It went while it was asked.
      if (!(error instanceof RuntimeError && error.code === "not_running")) throw error;
    }
    client.close();
    return undefined;
  }

  get folder(): string {
    return this.parts.folder.path;
  }
  get initPid(): number {
    return this.#initPid;
  }
  get rootOnHost(): HostRoot | undefined {
    const { rootOnHost, folder, record } = this.parts;
    if (rootOnHost === undefined) return undefined;
    return { path: folder.root, firstHostId: rootOnHost.firstHostId, volumes: record.volumes };
  }
  get isPaused(): boolean {
    return this.#isPaused;
  }

  async exec(request: ExecRequest): Promise<Exec> {
    const { id, argv, cwd = "", user, timeoutMs = 0, tty } = request;
    const machineEnv = this.parts.record.env;
    const env = commandEnv({ user, hasTerminal: tty !== undefined, machine: machineEnv, command: request.env });
    if ([...argv, ...env, cwd].some((word) => word.includes("\0"))) {
      throw new RuntimeError("not_runnable", "a command, its folder and its environment cannot contain NUL");
    }
    const size = [tty?.columns ?? 0, tty?.rows ?? 0];
    const client = this.#running();
    await client.request("exec", id, user, cwd, Math.ceil(timeoutMs), ...size, argv.length, ...argv, ...env);
    return this.#exec(id, client, request.isSoleUser);
  }

  async attach(execId: string): Promise<Exec | undefined> {
    const client = this.#running();
    const [isKnown] = await client.request("find", execId);
    return isKnown === "1" ? this.#exec(execId, client) : undefined;
  }

  async pause(): Promise<void> {
    await this.#running().request("pause");
    this.#isPaused = true;
  }

  async resume(): Promise<void> {
    await this.#running().request("resume");
    this.#isPaused = false;
  }

  async stop(): Promise<void> {
    if (this.#isOver) {
      await this.ended;
      return;
    }
    const hasEnded = new AbortController();
    void this.ended.then(() => hasEnded.abort());
    await Promise.race([this.#askToStop(hasEnded.signal), this.ended]);
    await this.ended;
  }

  async stats(): Promise<MachineStats> {
    const { cgroup, folder } = this.parts;
    const [group, disk] = await Promise.all([cgroup.stats(), diskUsage(folder.disk)]);
    return {
      cpuUsagePercent: this.#cpuPercent(group),
      memoryUsedBytes: group.memoryBytes,
      memoryLimitBytes: group.memoryLimitBytes,
      diskUsedBytes: disk.usedBytes,
      diskLimitBytes: disk.limitBytes,
      processes: group.processes,
    };
  }

  async renew(leaseMs: number): Promise<void> {
    await this.#running().request("renew", Math.ceil(leaseMs));
  }

  async connect(port: number): Promise<Duplex> {
    this.#running();
    const opened = await openStream(this.folder, "connect", port);
    if ("socket" in opened) return opened.socket;
    throw new RuntimeError("refused", `port ${port} of the machine: ${opened.refusal[1] ?? "refused"}`);
  }

  onEgress(listener: (connection: Duplex) => void): void {
    const { record, log } = this.parts;
    if (!record.network.enabled) throw new RuntimeError("unable", "the machine has no network");
    if (this.#egress !== undefined) throw new RuntimeError("failed", "its connections go to somebody already");
    this.#egress = new EgressSocket(this.folder, listener, (error) => {
      // What comes is refused; the next process of the node tries again.
      log.error({ sandbox: this.id, problem: messageOf(error) }, "a sandbox has no network");
    });
  }

  onLine(listener: (line: Line) => void, onLost?: (lines: number) => void): void {
    this.#onLine = listener;
    this.#onLost = onLost;
    // They come on the connection of requests: when that is gone, so is the machine, which `ended` tells.
    this.#client?.request("console").catch(() => undefined);
  }

  /** Makes it what a record says, its own unless given, as far as that can be said to a running machine. Repeatable. */
  async settle(record: MachineRecord = this.parts.record): Promise<void> {
    const client = this.#running();
    await Promise.all([
      client.request("hostname", record.hostname),
      ...(record.network.enabled ? [client.request("network", PROXY_PORT)] : []),
    ]);
  }

  /** Until it is killed, from now on; undefined: never. */
  async setDeadline(deadlineMs: number | undefined): Promise<void> {
    await this.#running().request("deadline", Math.ceil(deadlineMs ?? 0));
  }

  /** The machine goes on; this process lets go of it. Its `ended` is never told. */
  async letGo(): Promise<void> {
    this.#isOver = true;
    this.#released.abort();
    this.#client?.close();
    await this.#egress?.close();
  }

  /** For whoever ends it by force: lets go of it, and those who wait for its end are told. */
  async abandon(): Promise<void> {
    await this.letGo();
    this.#settleEnd({ cause: "stopped" });
  }

  #exec(id: string, client: SupervisorClient, isSoleUser = false): Exec {
    return new SupervisedExec({ id, folder: this.folder, client, letGo: this.#released.signal, isSoleUser });
  }

  #running(): SupervisorClient {
    if (this.#client === undefined || this.#isOver) throw new RuntimeError("not_running", "the machine has ended");
    return this.#client;
  }

  /** A supervisor that does not do it in time is killed, and the machine with it. */
  async #askToStop(hasEnded: AbortSignal): Promise<void> {
    const { clock, folder, cgroup } = this.parts;
    // Its connection ends when it goes, which `ended` tells as well.
    await this.#running()
      .request("stop")
      .catch(() => undefined);
    await pause(clock, STOP_TIMEOUT_MS, hasEnded);
    if (this.#isOver) return;
    await killSupervisor(folder, clock);
    await cgroup.kill();
    await this.ended;
  }

  async #end(told: { cause: string; reason: string } | undefined): Promise<void> {
    if (this.#isOver || this.#client === undefined) return;
    this.#isOver = true;
    const { folder, log, release } = this.parts;
    let end: MachineEnd | undefined;
    try {
      end = told === undefined ? await folder.readEnd() : endOf(told.cause, told.reason);
      await this.#egress?.close();
      await release();
    } catch (error) {
      log.error({ sandbox: this.id, problem: messageOf(error) }, "a sandbox that has ended was not taken apart");
    }
    this.#client.close();
    this.#settleEnd(end ?? { cause: "died", reason: "its supervisor was killed" });
  }

  /** Between this look and the one before; the first tells nothing. */
  #cpuPercent({ cpuUsageUs }: CgroupStats): number {
    const atMs = this.parts.clock.monotonicMs();
    this.#sample ??= { atMs, cpuUsageUs, percent: 0 };
    const last = this.#sample;
    const elapsedMs = atMs - last.atMs;
    if (elapsedMs < SAMPLE_MS) return last.percent;
    const percent = (Math.max(0, cpuUsageUs - last.cpuUsageUs) / (elapsedMs * 1000)) * 100;
    this.#sample = { atMs, cpuUsageUs, percent };
    return percent;
  }
}

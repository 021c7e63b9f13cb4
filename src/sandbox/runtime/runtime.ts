import type { Duplex } from "node:stream";
import type { BuiltImage } from "../contract/images/image.ts";
import type { NetworkSpec, ResourceLimits, VolumeMount } from "../contract/spec.ts";

/**
 * The runtime port: isolated machines on this computer. Drivers: `bubblewrap` (default), `runc` and `runsc`
 * (gVisor), which start machines by the OCI command line.
 *
 * A machine is a folder of its own (`folder`) with its disk, its root file system, and a supervisor: a small process
 * that outlives this program. The supervisor starts every command in the machine, holds its output and exit code, and
 * enforces the deadline and the lease: when the lease is not renewed in time it freezes the machine, and kills it after
 * a grace. A later process of this program takes the machine up again from its folder (`adopt`).
 *
 * Ids inside are those of a user namespace: a range of 65,536 unprivileged ids of the host, each machine's own
 * (`id-ranges.ts`), and so is what the kernel counts by user (`user-limits.ts`). Commands run as `AGENT_UID` without any
 * capability, or as root of the namespace with those that package managers need.
 */
export interface Runtime {
  readonly name: "bubblewrap" | "runc" | "runsc";
  /** What of a machine's limits it can enforce here, and why not; made once at start-up. */
  readonly abilities: RuntimeAbilities;
  /** Names of the images that machines can be made from. */
  images(): readonly string[];
  /** Makes an image that can be made here, where it is not there: `debian`. Rejects with `RuntimeError`. */
  prepareImage(name: string): Promise<void>;
  /**
   * Brings a built image here where it is not, for machines of its id. It stays for as long as any machine has it, and at
   * least until what this resolves to is called. Rejects with `RuntimeError`.
   */
  loadImage(image: BuiltImage): Promise<() => void>;
  /** Makes a machine and starts it. Rejects with `RuntimeError`; then nothing is left of it. */
  create(spec: MachineSpec): Promise<Machine>;
  /**
   * Takes up a machine whose supervisor still lives. Undefined when there is none: then nothing of it runs, and what
   * is left (the disk of one that was to be kept) is in its folder.
   */
  adopt(id: string): Promise<Machine | undefined>;
  /** Starts a machine that was stopped, or was lost with its processes, from its disk. */
  restart(spec: MachineSpec): Promise<Machine>;
  /** Removes whatever is left of a machine: processes, mounts, loop devices, cgroups, files. Repeatable. */
  remove(id: string): Promise<void>;
  /**
   * Mounts what the disk of a machine that is stopped shows as its root. It must be released before the machine is
   * started or removed. Undefined when there is no such disk.
   */
  openStopped(id: string): Promise<StoppedRoot | undefined>;
  /**
   * Limits of its own for the helpers that this program runs for a machine, up or stopped, outside of the machine's and
   * of its freezer: files to each of which a helper writes `0` before it does anything. Made where they are not there.
   */
  openHelperLimits(id: string): Promise<readonly string[]>;
  /** When no helper of the machine runs any more. Repeatable. */
  closeHelperLimits(id: string): Promise<void>;
  /** Machines of which anything is here: ids. */
  list(): Promise<string[]>;
  /** Named storage that machines share, one after the other. */
  volumes: VolumeStore;
  /** Prepared machines wait for `create` from here on, as many for each image as the options say. */
  warm(): void;
  /** Machines go on; this process lets go of them. */
  close(): Promise<void>;
}

export type RuntimeAbilities = {
  cpu: true | string;
  memory: true | string;
  processes: true | string;
  disk: true | string;
  pause: true | string;
  network: true | string;
};

export type MachineSpec = {
  /** The sandbox's: a UUID. */
  id: string;
  /** Undefined: the default image. */
  image: string | undefined;
  limits: ResourceLimits;
  network: Pick<NetworkSpec, "enabled">;
  volumes: readonly (VolumeMount & { path: string })[];
  hostname: string;
  /** Of every command; those of a command come on top. */
  env: Readonly<Record<string, string>>;
  /** Whether the disk stays when the machine stops. */
  keepsDisk: boolean;
  /** From now on, until the supervisor freezes it. */
  leaseMs: number;
  /** From now on, until the supervisor kills it; undefined: never. */
  deadlineMs: number | undefined;
};

export type HostRoot = {
  path: string;
  /** The host's id that is root in there. */
  firstHostId: number;
  /** What is mounted below it inside. */
  volumes: readonly { path: string; mountPath: string; readOnly: boolean }[];
};

export type StoppedRoot = {
  /** On the host. */
  path: string;
  /** What differs from its image: the upper layer of the overlay, on the host. */
  changes: string;
  /** The host's id that is root in there. */
  firstHostId: number;
  release(): Promise<void>;
};

export interface Machine {
  readonly id: string;
  readonly folder: string;
  /** The host's pid of the machine's first process, in all its namespaces; or of what stands for it (`rootOnHost`). */
  readonly initPid: number;
  /**
   * Where its files are while it runs when it has a kernel of its own, which no process of the host can enter. What is
   * mounted in there besides volumes is nowhere else: `/proc`, `/sys`, `/dev` and `/run`.
   */
  readonly rootOnHost: HostRoot | undefined;
  /** Whether the machine's processes stand still. */
  readonly isPaused: boolean;
  /** Resolves when the machine has ended, by whatever cause. */
  readonly ended: Promise<MachineEnd>;
  /**
   * Resolves when the command has begun, or has turned out not to be runnable (`RuntimeError` `not_runnable`). A
   * command that was begun goes on when this process ends.
   */
  exec(request: ExecRequest): Promise<Exec>;
  /** A command that was begun earlier, perhaps by an earlier process; undefined when nothing is known of it. */
  attach(execId: string): Promise<Exec | undefined>;
  /** Resolves when no process of the machine runs. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends all processes; the disk stays where the spec says so. The machine has ended then. */
  stop(): Promise<void>;
  stats(): Promise<MachineStats>;
  /** The lease lasts so long from now on; one that had run out thaws the machine again if it was frozen for that. */
  renew(leaseMs: number): Promise<void>;
  /** A connection to a TCP port inside. Rejects with `RuntimeError` `refused` when nobody listens. */
  connect(port: number): Promise<Duplex>;
  /**
   * Calls the listener with every connection that something inside opens to the machine's proxy
   * (`PROXY_PORT` on loopback). Only for machines with a network.
   */
  onEgress(listener: (connection: Duplex) => void): void;
  /**
   * Lines that were written to the console of the machine (`/proc/1/fd/1` and `/proc/1/fd/2`): a bounded number in a
   * second, for programs that write faster wait. While nobody listens the newest are kept; `onLost` gets how many were not.
   */
  onLine(
    listener: (line: { stream: "stdout" | "stderr"; line: string }) => void,
    onLost?: (lines: number) => void,
  ): void;
}

export type MachineEnd =
  | { cause: "stopped" }
  | { cause: "deadline" }
  | { cause: "lease" }
  | { cause: "died"; reason: string };

export const AGENT_UID = 1000;
export const AGENT_GID = 1000;
/** Ids inside are 0 to this, exclusive. */
export const ID_COUNT = 65_536;

export type ExecRequest = {
  /** A UUID that the caller chose: a request that is repeated does not run twice. */
  id: string;
  argv: readonly string[];
  cwd: string | undefined;
  env: Readonly<Record<string, string>>;
  user: "agent" | "root";
  /** After it the whole process group is killed; undefined: never. */
  timeoutMs: number | undefined;
  /** A terminal of that size, with one stream of output. */
  tty: { columns: number; rows: number } | undefined;
  /**
   * Nobody else writes to it or ends its input, and nobody else ever reads what it says: then neither needs to go by its
   * supervisor.
   */
  isSoleUser?: true;
};

export interface Exec {
  readonly id: string;
  /**
   * What it writes, from the beginning or from where the caller left off (bytes that it has had of each stream), and at
   * the end how it ended. Output is held by the supervisor, up to `EXEC_KEPT_BYTES` behind the reader: a reader that is
   * slow slows the command down; of a command that nobody reads the oldest is dropped. `skipped`: bytes that are no
   * longer there. Breaks, or ends, as soon as the signal is aborted, also while the command is silent.
   */
  output(from?: { stdout: number; stderr: number }, signal?: AbortSignal): AsyncIterable<ExecOutput>;
  write(bytes: Uint8Array): Promise<void>;
  /** The command reads the end of its input. */
  endInput(): Promise<void>;
  resize(size: { columns: number; rows: number }): Promise<void>;
  /** To the whole process group. */
  kill(signal: "SIGTERM" | "SIGINT" | "SIGKILL" | "SIGHUP"): Promise<void>;
}

export type ExecOutput =
  | { type: "stdout" | "stderr"; bytes: Uint8Array }
  | { type: "skipped"; stream: "stdout" | "stderr"; bytes: number }
  | { type: "exit"; exitCode: number | undefined; signal: string | undefined; timedOut: boolean };

/** Of one stream of one command. */
export const EXEC_KEPT_BYTES = 1024 * 1024;

export type MachineStats = {
  cpuUsagePercent: number;
  memoryUsedBytes: number;
  memoryLimitBytes: number;
  diskUsedBytes: number;
  diskLimitBytes: number;
  /** The first one, and one that waits for a command, among them. */
  processes: number;
};

/** Named storage on this computer. */
export interface VolumeStore {
  /** Where the volume is mounted on the host, with the ids it has inside; makes it when it is not there. */
  open(key: string, sizeMb: number): Promise<string>;
  /** Says that it is used at this moment, as `open` does. */
  touch(key: string): Promise<void>;
  /** Keys of those that were last used before that (ms since 1970). */
  unusedSince(atMs: number): Promise<string[]>;
  remove(key: string): Promise<void>;
}

/** What a runtime could not do, for the person who asked. */
export class RuntimeError extends Error {
  readonly code: "unknown_image" | "not_runnable" | "refused" | "not_running" | "no_space" | "unable" | "failed";

  constructor(code: RuntimeError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "RuntimeError";
    this.code = code;
  }
}

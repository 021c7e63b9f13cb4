import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { z } from "zod";
import { systemCodeOf } from "../../core/errors.ts";
import { listMounts } from "./mounts.ts";
import type { MachineEnd, MachineSpec } from "./runtime.ts";

/**
 * What is in the folder of a machine. It is made before anything else of the machine and removed after everything else,
 * so that nothing is ever anywhere of a machine that has no folder.
 *
 * - `machine.json`: what it was made from, and the name of its cgroup, which it keeps when the folder is renamed.
 * - `disk.ext4`, mounted at `disk`: all that differs from its image. `root`: its root file system. `volume-0` and so on:
 *   volumes with its ids.
 * - `supervisor.conf`, `supervisor.sock`, `supervisor.pid`, `supervisor.log`, `egress.sock`, `ended`: see
 *   `supervisor/supervisor.pl`.
 */
export class MachineFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  get name(): string {
    return basename(this.path);
  }
  get diskFile(): string {
    return join(this.path, "disk.ext4");
  }
  get disk(): string {
    return join(this.path, "disk");
  }
  get root(): string {
    return join(this.path, "root");
  }
  volumeAt(index: number): string {
    return join(this.path, `volume-${index}`);
  }
  get configuration(): string {
    return join(this.path, "supervisor.conf");
  }
  get log(): string {
    return join(this.path, "supervisor.log");
  }
  get pidFile(): string {
    return join(this.path, "supervisor.pid");
  }
  get #record(): string {
    return join(this.path, "machine.json");
  }
  get #ended(): string {
    return join(this.path, "ended");
  }

  /** Makes the folder where it is not there, and writes the record: the old one or the new one is there, whole. */
  async write(record: MachineRecord): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    await writeFile(`${this.#record}.new`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${this.#record}.new`, this.#record);
  }

  /** Undefined when there is none: the machine was about to be made, or is nearly removed. */
  async read(): Promise<MachineRecord | undefined> {
    const text = await textOf(this.#record);
    return text === undefined ? undefined : RECORD.parse(JSON.parse(text));
  }

  /** How the machine ended, as its supervisor wrote it. */
  async readEnd(): Promise<MachineEnd | undefined> {
    const text = await textOf(this.#ended);
    if (text === undefined) return undefined;
    const [cause = "", ...reason] = text.split("\n");
    return endOf(cause, reason.join("\n"));
  }

  /** What an earlier run left: its end would be taken for the next one's. */
  async forgetRun(): Promise<void> {
    const names = ["ended", "supervisor.sock", "supervisor.pid", "egress.sock"];
    await Promise.all(names.map((name) => rm(join(this.path, name), { force: true })));
  }

  /** The process of its supervisor. Undefined when none lives: numbers are used again, so its place is looked at. */
  async supervisorPid(): Promise<number | undefined> {
    const pid = Number(await textOf(this.pidFile));
    if (!Number.isSafeInteger(pid) || pid <= 1) return undefined;
    const [its, ours] = await Promise.all([placeOf(`/proc/${pid}/cwd`), placeOf(this.path)]);
    return its !== undefined && its === ours ? pid : undefined;
  }

  async moveTo(path: string): Promise<MachineFolder> {
    await rename(this.path, path);
    return new MachineFolder(path);
  }

  /** Rejects while anything is mounted below: what is on a volume is not the machine's to delete. */
  async remove(): Promise<void> {
    const [mount] = await listMounts(this.path);
    if (mount !== undefined) throw new Error(`${mount.at} is still mounted, so ${this.path} is not removed`);
    await rm(this.path, { recursive: true, force: true });
  }
}

/** Names of the folders in a folder. */
export async function foldersIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

const VOLUME = z.object({
  name: z.string(),
  mountPath: z.string(),
  readOnly: z.boolean(),
  sizeMb: z.number(),
  path: z.string(),
});
const RECORD = z.object({
  cgroup: z.string(),
  /** The host's id of its id 0. Machines of versions in which all had the same ids have none here. */
  firstHostId: z.number().optional(),
  image: z.string().optional(),
  limits: z.object({ cpuCores: z.number(), memoryMb: z.number(), diskMb: z.number(), maxProcesses: z.number() }),
  network: z.object({ enabled: z.boolean() }),
  volumes: z.array(VOLUME),
  hostname: z.string(),
  env: z.record(z.string(), z.string()),
  keepsDisk: z.boolean(),
});

/** What a later process has to know of a machine. */
export type MachineRecord = z.infer<typeof RECORD>;

export function recordOf(
  spec: Omit<MachineSpec, "id" | "leaseMs" | "deadlineMs">,
  its: Pick<MachineRecord, "cgroup" | "firstHostId">,
): MachineRecord {
  const { image, limits, network, volumes, hostname, env, keepsDisk } = spec;
  return {
    ...its,
    ...(image === undefined ? {} : { image }),
    limits,
    network: { enabled: network.enabled },
    volumes: [...volumes],
    hostname,
    env,
    keepsDisk,
  };
}

/** In the words of the supervisor. */
export function endOf(cause: string, reason: string): MachineEnd {
  switch (cause) {
    case "stopped":
    case "deadline":
    case "lease":
      return { cause };
    default:
      return { cause: "died", reason: reason === "" ? "its supervisor does not say why" : reason };
  }
}

/** Device and number of a folder, whatever its name. */
async function placeOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path);
    return `${dev}:${ino}`;
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT" || systemCodeOf(error) === "ESRCH") return undefined;
    throw error;
  }
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    // A process that ends while it is looked at.
    if (systemCodeOf(error) === "ENOENT" || systemCodeOf(error) === "ESRCH") return undefined;
    throw error;
  }
}

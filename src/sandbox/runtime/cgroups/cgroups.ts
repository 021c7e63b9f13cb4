import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, sleep } from "../../../core/clock.ts";
import { messageOf, systemCodeOf } from "../../../core/errors.ts";
import type { CgroupAbilities, CgroupLimits, CgroupStats, Controllers } from "./cgroups-controllers.ts";
import { hasLine, makeFolder, removeFolder, writeWord } from "./cgroups-files.ts";
import { makeParentV1, openControllersV1 } from "./cgroups-v1.ts";
import { openControllersV2 } from "./cgroups-v2.ts";
import { type MountEntry, readMounts } from "../mounts.ts";
import { RuntimeError } from "../runtime.ts";

/**
 * How to freeze and thaw a group by writing files, for a program that is not this one. It is frozen when
 * `frozenLine` is a line of `stateFile`.
 */
export type CgroupFreezer = {
  file: string;
  freezeWord: string;
  thawWord: string;
  stateFile: string;
  frozenLine: string;
};

/** Processes with limits of their own: the group of one name in every hierarchy that is used. */
export interface Cgroup {
  readonly name: string;
  /**
   * A pid written to each of these, in this order, joins the group with all its threads (`0` is the writer). The first
   * is the one by which it is killed. Empty where there are no cgroups.
   */
  readonly procsFiles: readonly string[];
  readonly freezer: CgroupFreezer | undefined;
  /**
   * A `1` written here kills everything in the group, also while it is frozen. Where there is none: freeze it, kill the
   * pids of `procsFiles[0]`, thaw it, and again until there are none.
   */
  readonly killFile: string | undefined;
  /** Resolves when nothing in the group runs. Rejects with `RuntimeError` `unable` where there is no freezer. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Kills everything in the group, frozen or not; resolves when nothing is left. */
  kill(): Promise<void>;
  setLimits(limits: CgroupLimits): Promise<void>;
  stats(): Promise<CgroupStats>;
  /** Removes the group, which must have no process any more (`kill`). Repeatable. */
  remove(): Promise<void>;
}

export interface Cgroups {
  readonly abilities: CgroupAbilities;
  /** Makes the group in all hierarchies, with its limits. One that is there already gets the limits. */
  create(name: string, limits: CgroupLimits): Promise<Cgroup>;
  /** A group that may have been made by an earlier process. Undefined when it is in no hierarchy. */
  open(name: string): Promise<Cgroup | undefined>;
  /** Names of all groups that are in any hierarchy. */
  list(): Promise<string[]>;
  /** Removes the folder that holds the groups where it is empty. */
  close(): Promise<void>;
}

export type CgroupOptions = {
  /** The folder in each hierarchy that holds the groups. */
  root: string;
  clock: Clock;
  /** Where the hierarchies are; those of this process by default. */
  mounts?: readonly MountEntry[];
};

/** How the groups of a parent folder are frozen; version 2 has a file that kills as well. */
type Freezing = { version: 1 | 2; parent: string };

/** Between two looks at whether a group stands still, or is empty. */
const LOOK_AFTER_MS = 1;
const FREEZE_TIMEOUT_MS = 10_000;
const KILL_TIMEOUT_MS = 20_000;

/**
 * Groups below `root` in every hierarchy of this computer.
 *
 * Limits come from version 2 where it has the controllers, else from version 1. Where both are there (a hybrid
 * computer), version 2 freezes and kills all the same: it takes as long, kills a fork bomb in one step, and what is
 * frozen can be killed.
 */
export async function openCgroups(options: CgroupOptions): Promise<Cgroups> {
  const { root, clock } = options;
  const mounts = options.mounts ?? (await readMounts());
  const hasV1 = mounts.some((mount) => mount.fsType === "cgroup");
  const v2 = await openControllersV2({ mounts, root });
  const controllers = v2.abilities.memory === true || !hasV1 ? v2 : await openControllersV1({ mounts, root });
  const freezing = (await freezingV2(v2.parents)) ?? (await freezingV1(mounts, root));
  return new OpenCgroups({ controllers, freezing, clock });
}

async function freezingV2(parents: readonly string[]): Promise<Freezing | undefined> {
  for (const parent of parents) {
    const files = await readdir(parent);
    if (files.includes("cgroup.kill") && files.includes("cgroup.freeze")) return { version: 2, parent };
  }
  return undefined;
}

async function freezingV1(mounts: readonly MountEntry[], root: string): Promise<Freezing | string> {
  const parent = await makeParentV1(mounts, root, "freezer");
  return parent.ok ? { version: 1, parent: parent.folder } : parent.reason;
}

class OpenCgroups implements Cgroups {
  readonly abilities: CgroupAbilities;
  readonly #controllers: Controllers;
  readonly #freezing: Freezing | undefined;
  readonly #clock: Clock;
  /** The one that freezes is the first: who has joined it can be killed. */
  readonly #parents: readonly string[];

  constructor(parts: { controllers: Controllers; freezing: Freezing | string; clock: Clock }) {
    const { controllers, freezing, clock } = parts;
    this.#controllers = controllers;
    this.#freezing = typeof freezing === "string" ? undefined : freezing;
    this.#clock = clock;
    this.abilities = { ...controllers.abilities, pause: typeof freezing === "string" ? freezing : true };
    const first = typeof freezing === "string" ? [] : [freezing.parent];
    this.#parents = [...new Set([...first, ...controllers.parents])];
  }

  async create(name: string, limits: CgroupLimits): Promise<Cgroup> {
    checkName(name);
    const group = this.#group(name);
    try {
      await Promise.all(this.#parents.map((parent) => makeFolder(join(parent, name))));
      await group.setLimits(limits);
    } catch (error) {
      await group.remove();
      throw new RuntimeError("failed", `no cgroup with these limits could be made: ${messageOf(error)}`, {
        cause: error,
      });
    }
    return group;
  }

  async open(name: string): Promise<Cgroup | undefined> {
    const names = await this.list();
    return names.includes(name) ? this.#group(name) : undefined;
  }

  async list(): Promise<string[]> {
    const names = await Promise.all(this.#parents.map(foldersIn));
    return [...new Set(names.flat())];
  }

  async close(): Promise<void> {
    if ((await this.list()).length > 0) return;
    await Promise.all(this.#parents.map((parent) => removeFolder(parent, this.#clock)));
  }

  #group(name: string): CgroupFolders {
    return new CgroupFolders({
      name,
      folders: this.#parents.map((parent) => join(parent, name)),
      freezing: this.#freezing,
      controllers: this.#controllers,
      clock: this.#clock,
    });
  }
}

/** Names become folders. */
function checkName(name: string): void {
  if (!/^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$/.test(name)) throw new Error(`${name} cannot be the name of a cgroup`);
}

type CgroupParts = {
  name: string;
  folders: readonly string[];
  freezing: Freezing | undefined;
  controllers: Controllers;
  clock: Clock;
};

class CgroupFolders implements Cgroup {
  readonly name: string;
  readonly procsFiles: readonly string[];
  readonly freezer: CgroupFreezer | undefined;
  readonly killFile: string | undefined;
  readonly #folders: readonly string[];
  readonly #controllers: Controllers;
  readonly #clock: Clock;

  constructor({ name, folders, freezing, controllers, clock }: CgroupParts) {
    this.name = name;
    this.procsFiles = folders.map((folder) => join(folder, "cgroup.procs"));
    this.freezer = freezing === undefined ? undefined : freezerOf(freezing, name);
    this.killFile = freezing?.version === 2 ? join(freezing.parent, name, "cgroup.kill") : undefined;
    this.#folders = folders;
    this.#controllers = controllers;
    this.#clock = clock;
  }

  async freeze(): Promise<void> {
    const freezer = this.freezer;
    if (freezer === undefined) throw new RuntimeError("unable", "there is no freezer on this computer");
    await writeWord(freezer.file, freezer.freezeWord);
    await this.#until(FREEZE_TIMEOUT_MS, "did not stand still", async () =>
      hasLine(await readFile(freezer.stateFile, "utf8"), freezer.frozenLine),
    );
  }

  async thaw(): Promise<void> {
    if (this.freezer !== undefined) await writeWord(this.freezer.file, this.freezer.thawWord);
  }

  async kill(): Promise<void> {
    const [procs] = this.procsFiles;
    if (procs === undefined) return;
    try {
      await this.#until(KILL_TIMEOUT_MS, "did not end", async () => {
        if ((await pidsOf(procs)).length === 0) return true;
        await (this.killFile === undefined ? this.#killEach(procs) : writeWord(this.killFile, "1"));
        return false;
      });
      await this.thaw();
    } catch (error) {
      if (systemCodeOf(error) !== "ENOENT" && systemCodeOf(error) !== "ENODEV") throw error;
    }
  }

  /** While they stand still, none can fork behind our back; a frozen process dies only when it is thawed. */
  async #killEach(procs: string): Promise<void> {
    await this.freeze();
    for (const pid of await pidsOf(procs)) killOne(pid);
    await this.thaw();
  }

  async setLimits(limits: CgroupLimits): Promise<void> {
    await this.#controllers.setLimits(this.name, limits);
  }

  stats(): Promise<CgroupStats> {
    return this.#controllers.stats(this.name);
  }

  async remove(): Promise<void> {
    await Promise.all(this.#folders.map((folder) => removeFolder(folder, this.#clock)));
  }

  async #until(timeoutMs: number, complaint: string, isSo: () => Promise<boolean>): Promise<void> {
    const startedMs = this.#clock.monotonicMs();
    while (!(await isSo())) {
      if (this.#clock.monotonicMs() - startedMs > timeoutMs) {
        throw new RuntimeError("failed", `the processes of ${this.name} ${complaint} within ${timeoutMs / 1000} s`);
      }
      await sleep(this.#clock, LOOK_AFTER_MS);
    }
  }
}

function freezerOf({ version, parent }: Freezing, name: string): CgroupFreezer {
  const folder = join(parent, name);
  if (version === 2) {
    const [file, stateFile] = [join(folder, "cgroup.freeze"), join(folder, "cgroup.events")];
    return { file, freezeWord: "1", thawWord: "0", stateFile, frozenLine: "frozen 1" };
  }
  const file = join(folder, "freezer.state");
  return { file, freezeWord: "FROZEN", thawWord: "THAWED", stateFile: file, frozenLine: "FROZEN" };
}

/** Names of the groups in a folder; none when it was removed with the last of them. */
async function foldersIn(parent: string): Promise<string[]> {
  try {
    const entries = await readdir(parent, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return [];
    throw error;
  }
}

async function pidsOf(procsFile: string): Promise<number[]> {
  const text = await readFile(procsFile, "utf8");
  return text.split("\n").filter(Boolean).map(Number);
}

function killOne(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // It has ended by itself.
    if (systemCodeOf(error) !== "ESRCH") throw error;
  }
}

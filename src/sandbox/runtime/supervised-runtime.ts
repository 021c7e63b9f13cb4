import { access, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Cgroup, Cgroups } from "./cgroups/cgroups.ts";
import { changesOn, closeRoot, openRoot } from "./disks.ts";
import { MachineFolder, type MachineRecord, foldersIn, recordOf } from "./folder.ts";
import type { IdRanges } from "./id-ranges.ts";
import { writeHostFiles } from "./images/images-files.ts";
import type { BuiltImages } from "./images/built-images.ts";
import { isImageId, type BuiltImage } from "../contract/images/image.ts";
import type { ImagePlace, Images } from "./images/images.ts";
import type { Launcher, LaunchRequest } from "./launcher.ts";
import { SupervisedMachine } from "./machine.ts";
import { sweepMounts } from "./mounts.ts";
import {
  type Machine,
  type MachineSpec,
  type Runtime,
  RuntimeError,
  type StoppedRoot,
  type VolumeStore,
} from "./runtime.ts";
import { killSupervisor, startSupervisor } from "./supervisor-start.ts";
import type { UserLimits } from "./user-limits.ts";
import { WarmPool } from "./warm-pool.ts";

export type SupervisedOptions = {
  clock: Clock;
  ids: IdSource;
  log: Log;
  launcher: Launcher;
  cgroups: Cgroups;
  images: Images;
  built: BuiltImages;
  volumes: VolumeStore;
  /** Where the folders of machines are, and where empty disks to copy are kept. */
  machinesFolder: string;
  templatesFolder: string;
  ranges: IdRanges;
  userLimits: UserLimits;
  firstProcessFile: string;
  filterFile: string;
  /** From the end of a lease on, in which the machine stands still. */
  graceMs: number;
  /** How many prepared machines wait for each image, and what they are made for. */
  warm: { machines: number; diskMb: number };
};

/** What a machine is made from, whatever its id. */
type Wanted = Omit<MachineSpec, "id">;

/** Folders of prepared machines are named so; ids of sandboxes are UUIDs. */
const WARM_PREFIX = "warm-";
const HELPERS_PREFIX = "helpers-";
/** Of all helpers of one machine together; what they read and write counts as memory only as long as there is room. */
const HELPER_LIMITS = { cpuCores: 1, memoryMb: 128, maxProcesses: 16 } as const;

/** Machines with supervisors, made by a launcher (bubblewrap, or an OCI runtime). */
export class SupervisedRuntime implements Runtime {
  readonly name: Runtime["name"];
  readonly abilities: Runtime["abilities"];
  readonly volumes: VolumeStore;
  readonly #options: SupervisedOptions;
  readonly #machines = new Map<string, SupervisedMachine>();
  /** What is under way for a machine: the next for the same waits for it. */
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #pool: WarmPool;

  private constructor(options: SupervisedOptions) {
    this.#options = options;
    this.name = options.launcher.name;
    this.volumes = options.volumes;
    this.abilities = { ...options.cgroups.abilities, disk: true, network: true };
    this.#pool = new WarmPool({
      clock: options.clock,
      log: options.log,
      // Its name and its limits inside cannot be changed any more.
      machines: options.launcher.hasOwnKernel ? 0 : options.warm.machines,
      images: () => options.images.names(),
      make: (image, leaseMs) => this.#makeWarm(image, leaseMs),
      remove: (machine) =>
        this.#inTurn(machine.id, async () => {
          await machine.abandon();
          await this.#removeFolder(machine.parts.folder);
        }),
    });
  }

  /** Takes away what an earlier process left of machines that were prepared, or never got a folder. */
  static async open(options: SupervisedOptions): Promise<SupervisedRuntime> {
    const runtime = new SupervisedRuntime(options);
    await runtime.#sweep();
    return runtime;
  }

  images(): readonly string[] {
    return [...this.#options.images.names(), ...this.#options.built.ids()];
  }

  prepareImage(name: string): Promise<void> {
    return this.#options.images.prepare(name);
  }

  async loadImage(image: BuiltImage): Promise<() => void> {
    return await this.#options.built.load(image, () => this.#imagesInUse());
  }

  create(spec: MachineSpec): Promise<Machine> {
    return this.#inTurn(spec.id, async () => {
      const folder = this.#folderOf(spec.id);
      if (await exists(folder.path)) throw new RuntimeError("failed", `the machine ${spec.id} is there already`);
      const machine =
        (await this.#fromPool(spec)) ?? (await this.#make(spec.id, folder, spec, this.#options.ranges.take()));
      this.#keep(machine);
      return machine;
    });
  }

  restart(spec: MachineSpec): Promise<Machine> {
    return this.#inTurn(spec.id, async () => {
      const folder = this.#folderOf(spec.id);
      await this.#forget(spec.id);
      await this.#clear(folder);
      await folder.forgetRun();
      const machine = await this.#make(spec.id, folder, spec, await this.#rangeFor(folder));
      this.#keep(machine);
      return machine;
    });
  }

  adopt(id: string): Promise<Machine | undefined> {
    return this.#inTurn(id, async () => {
      const known = this.#machines.get(id);
      if (known !== undefined) return known;
      const folder = this.#folderOf(id);
      const record = await folder.read();
      if (record === undefined) return undefined;
      const cgroup = await this.#options.cgroups.open(record.cgroup);
      const machine = cgroup === undefined ? undefined : await this.#open({ id, folder, record, cgroup });
      if (machine === undefined) {
        await this.#clear(folder);
        await this.#dropDisk(folder, record);
        return undefined;
      }
      // The process that made it may have died before it did so.
      await machine.settle();
      this.#keep(machine);
      return machine;
    });
  }

  remove(id: string): Promise<void> {
    return this.#inTurn(id, async () => {
      await this.#forget(id);
      await this.#removeFolder(this.#folderOf(id));
    });
  }

  openStopped(id: string): Promise<StoppedRoot | undefined> {
    return this.#inTurn(id, async () => {
      const folder = this.#folderOf(id);
      const record = await folder.read();
      if (record === undefined || this.#machines.has(id) || !(await exists(folder.diskFile))) return undefined;
      const image = await this.#image(record.image);
      const place = { disk: folder.disk, at: folder.root };
      const firstHostId = this.#firstHostIdOf(record);
      await openRoot({ ...place, image, firstHostId, isVolatile: !record.keepsDisk, diskFile: folder.diskFile });
      // Late, it would take the root of a machine that runs again.
      const release = () => this.#inTurn(id, async () => (this.#machines.has(id) ? undefined : closeRoot(place)));
      const changes = changesOn(folder.disk);
      return { path: folder.root, changes, firstHostId, release };
    });
  }

  openHelperLimits(id: string): Promise<readonly string[]> {
    return this.#inTurn(id, async () => {
      const { cgroups } = this.#options;
      const group = await cgroups.create(`${HELPERS_PREFIX}${this.#folderOf(id).name}`, HELPER_LIMITS);
      return group.procsFiles;
    });
  }

  closeHelperLimits(id: string): Promise<void> {
    return this.#inTurn(id, async () => {
      const group = await this.#options.cgroups.open(`${HELPERS_PREFIX}${this.#folderOf(id).name}`);
      await group?.remove();
    });
  }

  async list(): Promise<string[]> {
    const names = await foldersIn(this.#options.machinesFolder);
    return names.filter((name) => !name.startsWith(WARM_PREFIX));
  }

  warm(): void {
    this.#pool.start();
  }

  async close(): Promise<void> {
    await this.#pool.close();
    await Promise.all([...this.#turns.values()].map((turn) => turn.catch(() => undefined)));
    await Promise.all([...this.#machines.values()].map((machine) => machine.letGo()));
    this.#machines.clear();
    await this.#options.cgroups.close();
  }

  #folderOf(id: string): MachineFolder {
    if (!/^[\w-]+$/.test(id)) throw new RuntimeError("failed", `${id} cannot be the id of a machine`);
    return new MachineFolder(join(this.#options.machinesFolder, id));
  }

  async #image(name: string | undefined): Promise<ImagePlace> {
    const { images, built } = this.#options;
    return name !== undefined && isImageId(name) ? built.get(name) : await images.get(name);
  }

  /** Those of all machines that are here, stopped ones too. */
  async #imagesInUse(): Promise<Set<string>> {
    const folders = (await foldersIn(this.#options.machinesFolder)).map((name) => this.#folderAt(name));
    const records = await Promise.all(folders.map((folder) => folder.read()));
    return new Set(records.flatMap((record) => record?.image ?? []));
  }

  #folderAt(name: string): MachineFolder {
    return new MachineFolder(join(this.#options.machinesFolder, name));
  }

  #firstHostIdOf(record: MachineRecord): number {
    return record.firstHostId ?? this.#options.ranges.shared;
  }

  /** A disk has the ids of its machine on it, so it keeps its range; also that which it shares with others of its age. */
  async #rangeFor(folder: MachineFolder): Promise<number> {
    const { ranges } = this.#options;
    const record = await folder.read();
    return record?.firstHostId ?? ((await exists(folder.diskFile)) ? ranges.shared : ranges.take());
  }

  async #makeWarm(image: string, leaseMs: number): Promise<SupervisedMachine> {
    const { ids, warm, machinesFolder, ranges } = this.#options;
    const id = `${WARM_PREFIX}${ids()}`;
    const folder = new MachineFolder(join(machinesFolder, id));
    const wanted: Wanted = {
      image,
      limits: { cpuCores: 1, memoryMb: 256, diskMb: warm.diskMb, maxProcesses: 64 },
      network: { enabled: false },
      volumes: [],
      hostname: "sandbox",
      env: {},
      keepsDisk: false,
      leaseMs,
      deadlineMs: undefined,
    };
    return this.#make(id, folder, wanted, ranges.take());
  }

  /** A prepared one, where it can become what is asked for; what was begun is undone when it cannot. */
  async #fromPool(spec: MachineSpec): Promise<SupervisedMachine | undefined> {
    if (spec.keepsDisk || spec.volumes.length > 0 || spec.limits.diskMb !== this.#options.warm.diskMb) return undefined;
    const image = await this.#image(spec.image);
    const warm = this.#pool.take(image.name);
    if (warm === undefined) return undefined;
    const { folder: warmFolder, cgroup } = warm.parts;
    const firstHostId = this.#firstHostIdOf(warm.parts.record);
    let folder = warmFolder;
    try {
      const record = recordOf(spec, { cgroup: cgroup.name, firstHostId });
      // Before its folder has the name of the sandbox: a process that dies here leaves a prepared machine, and none that
      // is not what was asked for.
      await Promise.all([
        folder.write(record),
        warm.settle(record),
        warm.renew(spec.leaseMs),
        warm.setDeadline(spec.deadlineMs),
        cgroup.setLimits(spec.limits),
        writeHostFiles(folder.root, spec.hostname, firstHostId),
      ]);
      await warm.letGo();
      folder = await warmFolder.moveTo(this.#folderOf(spec.id).path);
      const machine = await this.#open({ id: spec.id, folder, record, cgroup });
      if (machine === undefined) throw new RuntimeError("failed", "a prepared machine has ended");
      return machine;
    } catch (error) {
      this.#options.log.warn({ sandbox: spec.id, problem: messageOf(error) }, "a prepared machine could not be used");
      await this.#removeFolder(folder);
      return undefined;
    }
  }

  /** `firstHostId`: of the range of ids that is the machine's until it is removed. */
  async #make(id: string, folder: MachineFolder, wanted: Wanted, firstHostId: number): Promise<SupervisedMachine> {
    const { ids, cgroups, launcher, ranges } = this.#options;
    const hadDisk = await exists(folder.diskFile);
    try {
      const image = await this.#image(wanted.image);
      const volumes = wanted.volumes.map((volume, index) => ({ ...volume, path: folder.volumeAt(index) }));
      const record = recordOf({ ...wanted, volumes }, { cgroup: `m-${ids()}`, firstHostId });
      await folder.write(record);
      const making = cgroups.create(record.cgroup, launcher.groupLimits(record.limits));
      // When one fails nothing may be mounted any more while the folder is removed: volumes lie in it.
      await allDone([
        making.then(() => undefined),
        this.#mountRoot(folder, wanted, { image, firstHostId, hasDisk: hadDisk }),
      ]);
      const cgroup = await making;
      await allDone([
        this.#launch(wanted, { folder, record, image, cgroup, firstHostId }),
        // Nothing of its owner runs before it is there.
        ...(hadDisk ? [] : [writeHostFiles(folder.root, wanted.hostname, firstHostId)]),
      ]);
      const machine = await this.#open({ id, folder, record, cgroup });
      if (machine === undefined) throw new RuntimeError("failed", "the machine ended as soon as it had started");
      await machine.settle();
      return machine;
    } catch (error) {
      await this.#clear(folder);
      // A disk that was there before has what its owner wants to keep.
      if (!hadDisk) {
        await folder.remove();
        ranges.release(firstHostId);
      }
      throw error;
    }
  }

  async #mountRoot(
    folder: MachineFolder,
    { volumes, limits, keepsDisk }: Wanted,
    { image, firstHostId, hasDisk }: { image: ImagePlace; firstHostId: number; hasDisk: boolean },
  ): Promise<void> {
    const fresh = {
      path: folder.diskFile,
      sizeMb: limits.diskMb,
      isDurable: keepsDisk,
      templates: this.#options.templatesFolder,
    };
    await openRoot({
      image,
      firstHostId,
      disk: folder.disk,
      at: folder.root,
      isVolatile: !keepsDisk,
      diskFile: hasDisk ? folder.diskFile : fresh,
      volumes: volumes.map(({ path, readOnly }, index) => ({ from: path, at: folder.volumeAt(index), readOnly })),
    });
  }

  async #launch(
    times: Pick<MachineSpec, "leaseMs" | "deadlineMs">,
    parts: Pick<LaunchRequest, "folder" | "record" | "image" | "cgroup" | "firstHostId">,
  ): Promise<void> {
    const { launcher, firstProcessFile, filterFile, graceMs, userLimits } = this.#options;
    const launch = await launcher.prepare({ ...parts, firstProcessFile, filterFile, userLimits });
    await startSupervisor(parts.folder, { ...parts, ...times, launch, filterFile, graceMs, userLimits });
  }

  #open(parts: {
    id: string;
    folder: MachineFolder;
    record: MachineRecord;
    cgroup: Cgroup;
  }): Promise<SupervisedMachine | undefined> {
    const { clock, log, launcher } = this.#options;
    const { id, folder, record } = parts;
    const rootOnHost = launcher.hasOwnKernel ? { firstHostId: this.#firstHostIdOf(record) } : undefined;
    // In its turn: if the machine was removed or started again meanwhile, there is nothing of this run any more.
    const release = () =>
      this.#inTurn(id, async () => {
        if ((await folder.read())?.cgroup === record.cgroup) await this.#release(folder, record);
      });
    return SupervisedMachine.open({ ...parts, rootOnHost, clock, log, release });
  }

  #keep(machine: SupervisedMachine): void {
    this.#machines.set(machine.id, machine);
    void machine.ended.then(() => {
      if (this.#machines.get(machine.id) === machine) this.#machines.delete(machine.id);
    });
  }

  /** After the end of its processes. The supervisor stays for a while, for those who still read output. */
  async #release(folder: MachineFolder, record: MachineRecord): Promise<void> {
    await this.#takeApart(folder, record.cgroup);
    await this.#dropDisk(folder, record);
  }

  async #dropDisk(folder: MachineFolder, record: MachineRecord): Promise<void> {
    if (!record.keepsDisk) await rm(folder.diskFile, { force: true });
  }

  /** Ends whatever runs of a machine, and takes apart what is there of it but its folder. Repeatable. */
  async #clear(folder: MachineFolder): Promise<void> {
    await killSupervisor(folder, this.#options.clock);
    await this.#takeApart(folder, (await folder.read())?.cgroup);
  }

  async #takeApart(folder: MachineFolder, cgroupName: string | undefined): Promise<void> {
    const cgroup = cgroupName === undefined ? undefined : await this.#options.cgroups.open(cgroupName);
    await cgroup?.kill();
    await this.#options.launcher.forget(folder);
    await Promise.all([sweepMounts(folder.path), cgroup?.remove()]);
  }

  async #forget(id: string): Promise<void> {
    await this.#machines.get(id)?.abandon();
    this.#machines.delete(id);
  }

  async #removeFolder(folder: MachineFolder): Promise<void> {
    if (!(await exists(folder.path))) return;
    const record = await folder.read();
    await this.#clear(folder);
    await folder.remove();
    if (record?.firstHostId !== undefined) this.#options.ranges.release(record.firstHostId);
  }

  async #sweep(): Promise<void> {
    const { machinesFolder, cgroups, ranges } = this.#options;
    const folders = (await foldersIn(machinesFolder)).map((name) => new MachineFolder(join(machinesFolder, name)));
    const used = new Set<string>();
    for (const folder of folders) {
      if (folder.path.startsWith(join(machinesFolder, WARM_PREFIX))) {
        await this.#removeFolder(folder);
        continue;
      }
      const record = await folder.read();
      used.add(record?.cgroup ?? "");
      if (record?.firstHostId !== undefined) ranges.keep(record.firstHostId);
    }
    for (const name of await cgroups.list()) {
      if (used.has(name)) continue;
      const cgroup = await cgroups.open(name);
      await cgroup?.kill();
      await cgroup?.remove();
    }
  }

  async #inTurn<T>(id: string, task: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(id) ?? Promise.resolve()).catch(() => undefined).then(task);
    this.#turns.set(id, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(id) === turn) this.#turns.delete(id);
    }
  }
}

/** Like `Promise.all`, but none is under way any more when it rejects. */
async function allDone(tasks: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(tasks)).find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

import { access, constants, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import { BuiltImages, type BuiltImagesOptions } from "./images/built-images.ts";
import { bubblewrapLauncher } from "./bubblewrap.ts";
import { openCgroups } from "./cgroups/cgroups.ts";
import { firstProcess } from "./first-process.ts";
import { IdRanges, checkRanges } from "./id-ranges.ts";
import { openImages } from "./images/images.ts";
import { type Launcher, READY_FD } from "./launcher.ts";
import { makeMountsPrivate } from "./mounts.ts";
import { runcLauncher } from "./runc.ts";
import { runscLauncher } from "./runsc.ts";
import { type Runtime, RuntimeError } from "./runtime.ts";
import { seccompFilter } from "../../io/seccomp/filter.ts";
import { SupervisedRuntime } from "./supervised-runtime.ts";
import { USER_LIMITS, type UserLimits } from "./user-limits.ts";
import { openVolumes } from "./volumes.ts";

export type RuntimeOptions = {
  /** Folder of a node for machines, images and volumes. One process at a time works in it. */
  home: string;
  clock: Clock;
  ids: IdSource;
  log: Log;
  /** `auto`: what is installed, bubblewrap before runc. */
  runtime: "auto" | Runtime["name"];
  /**
   * So many ranges of 65,536 ids of the host belong to machines, one to each, from this id on: the first is that of
   * machines from when all had the same.
   */
  firstHostId: number;
  idRanges: number;
  userLimits?: Partial<UserLimits>;
  /** From the end of a lease on, in which a machine stands still before it is killed. */
  graceMs: number;
  /** Prepared machines for each image, and the size of their disks: that of most machines. */
  warm: { machines: number; diskMb: number };
  /** Name of the folder in all cgroup hierarchies that holds the groups of machines. */
  cgroupRoot: string;
  /** Where built images come from, and how much of them is kept; none by default. */
  builtImages?: Pick<BuiltImagesOptions, "read" | "cacheBytes">;
};

/**
 * Opens the runtime of this computer. Rejects with `RuntimeError` `unable` when there can be no machines here; the
 * message says why. Limits that cannot be enforced are no reason for that: see `abilities`.
 */
export async function openRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { home, clock, ids, log, graceMs, warm } = options;
  const launcher = await findLauncher(options);
  const range = { first: options.firstHostId, count: options.idRanges };
  await checkRanges(range);
  const machinesFolder = join(home, "machines");
  await mkdir(machinesFolder, { recursive: true, mode: 0o700 });
  await makeMountsPrivate(machinesFolder);
  const [cgroups, images, volumes, firstProcessFile, filterFile] = await Promise.all([
    openCgroups({ root: options.cgroupRoot, clock }),
    openImages({ folder: join(home, "images") }),
    openVolumes({ folder: join(home, "volumes") }),
    put(join(home, "first-process"), firstProcess(process.arch, READY_FD), 0o555),
    put(join(home, "system-calls.bpf"), seccompFilter(architecture()), 0o444),
  ]);
  const built = await BuiltImages.open({
    ...(options.builtImages ?? NO_BUILT_IMAGES),
    folder: join(home, "images"),
    images,
    clock,
  });
  return SupervisedRuntime.open({
    clock,
    ids,
    log,
    launcher,
    cgroups,
    images,
    built,
    volumes,
    machinesFolder,
    templatesFolder: join(home, "templates"),
    ranges: new IdRanges({ ...range, home }),
    userLimits: { ...USER_LIMITS, ...options.userLimits },
    firstProcessFile,
    filterFile,
    graceMs,
    warm,
  });
}

const NO_BUILT_IMAGES = {
  cacheBytes: 0,
  read: () => Promise.reject(new RuntimeError("unable", "this node has nowhere to get built images from")),
};

function architecture(): "x64" | "arm64" {
  if (process.arch === "x64" || process.arch === "arm64") return process.arch;
  throw new RuntimeError("unable", `there are no sandboxes on processors of the kind ${process.arch}`);
}

const PROGRAMS = {
  bubblewrap: { file: "bwrap", launcher: bubblewrapLauncher },
  runc: { file: "runc", launcher: runcLauncher },
  runsc: { file: "runsc", launcher: runscLauncher },
} as const satisfies Record<Runtime["name"], { file: string; launcher: (program: string) => Launcher }>;
const AUTOMATIC = ["bubblewrap", "runc"] as const;

/**
 * What would start machines on this computer, of which nothing is changed. Rejects with `RuntimeError` `unable`, which
 * says what is missing.
 */
export async function findLauncher({ runtime }: Pick<RuntimeOptions, "runtime">): Promise<Launcher> {
  if (process.platform !== "linux") throw new RuntimeError("unable", "sandboxes need Linux");
  if (process.getuid?.() !== 0) throw new RuntimeError("unable", "sandboxes need root");
  if ((await findProgram("perl")) === undefined) throw new RuntimeError("unable", "perl is not installed");
  for (const name of runtime === "auto" ? AUTOMATIC : [runtime]) {
    const { file, launcher } = PROGRAMS[name];
    const program = await findProgram(file);
    if (program !== undefined) return launcher(program);
  }
  throw new RuntimeError(
    "unable",
    runtime === "auto" ? "neither bubblewrap nor runc is installed" : `${runtime} is not installed`,
  );
}

/** The path of a program of the system. */
async function findProgram(name: string): Promise<string | undefined> {
  for (const folder of ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]) {
    const path = join(folder, name);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  return undefined;
}

/** Machines that start meanwhile find the old file or the new one, whole. */
async function put(path: string, bytes: Uint8Array, mode: number): Promise<string> {
  await writeFile(`${path}.new`, bytes, { mode });
  await rename(`${path}.new`, path);
  return path;
}

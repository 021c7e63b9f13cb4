import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "../../core/errors.ts";
import type { MachineFolder } from "./folder.ts";
import { HIDDEN_FILES, HIDDEN_FOLDERS, READ_ONLY } from "./hidden-files.ts";
import { type Launch, type LaunchRequest, type Launcher, USER_NAMESPACE } from "./launcher.ts";
import { runProgram } from "./mounts.ts";
import { FIRST_PROCESS, ociMachine, RUN_BYTES, SHARED_MEMORY_BYTES } from "./oci.ts";
import { ID_COUNT, RuntimeError } from "./runtime.ts";
import { ociSeccomp } from "./seccomp-oci.ts";
import type { UserLimits } from "./user-limits.ts";

/** The group of terminals, in all images. */
const TTY_GID = 5;
/** Descriptors above standard error that the first process gets: `READY_FD`. */
const PRESERVED_FDS = 1;

/**
 * Machines by runc, or another OCI runtime with its command line whose containers are processes of the host's kernel: a
 * command enters the namespaces of the first process, which a kernel of its own (gVisor) does not have.
 *
 * The runtime makes cgroups of its own, in every hierarchy. The supervisor moves the first process out of those that
 * limit, into the machine's; the rest goes with the container.
 */
export function runcLauncher(program: string): Launcher {
  return {
    name: "runc",
    hasOwnKernel: false,
    groupLimits: (limits) => limits,
    prepare: (request) => prepare(program, request),
    forget: (folder) => forget(program, folder),
  };
}

/** The runtime keeps there what it knows of the container, the only one below this folder. */
function stateFolder(folder: MachineFolder): string {
  return join(folder.path, "runc", "state");
}

async function prepare(program: string, request: LaunchRequest): Promise<Launch> {
  const { folder, record, firstProcessFile } = request;
  const bundle = join(folder.path, "bundle");
  const run = join(folder.path, "runc");
  await rm(run, { recursive: true, force: true });
  await Promise.all([mkdir(bundle, { recursive: true }), mkdir(join(run, "state"), { recursive: true, mode: 0o700 })]);
  // The runtime looks for what it mounts as the root of the machine.
  await chmod(bundle, 0o755);
  await writeFile(join(bundle, "config.json"), JSON.stringify(ociConfig(request)), { mode: 0o600 });
  const options = ["--detach", "--no-new-keyring", "--preserve-fds", String(PRESERVED_FDS)];
  const files = ["--bundle", "/tmp/bundle", "--pid-file", "/tmp/runc/pid"];
  return {
    command: [program, "--root", "/tmp/runc/state", "run", ...options, ...files, record.cgroup],
    passed: [],
    staged: [
      { from: folder.root, name: "root" },
      { from: bundle, name: "bundle" },
      { from: run, name: "runc" },
      ...record.volumes.map(({ path }, index) => ({ from: path, name: `volume-${index}` })),
    ],
    copied: [{ from: firstProcessFile, name: "first-process" }],
    inUserNamespace: false,
    // It mounts them with their limit.
    terminals: undefined,
    pidFrom: { file: join(run, "pid") },
    ownKernel: undefined,
  };
}

/** Its cgroups are empty by then, but they are there. */
async function forget(program: string, folder: MachineFolder): Promise<void> {
  const state = stateFolder(folder);
  for (const container of await namesIn(state)) {
    await runProgram(program, ["--root", state, "delete", "--force", container]);
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** The configuration of the OCI runtime specification, 1.0. */
function ociConfig({ record, firstHostId, cgroup, userLimits }: LaunchRequest): object {
  const ids = [{ containerID: 0, hostID: firstHostId, size: ID_COUNT }];
  return {
    ...ociMachine({ record }),
    mounts: [...systemMounts(userLimits), ...record.volumes.map(volumeMount)],
    linux: {
      namespaces: [
        // What it made itself would be the host's root's, and what is used in it would count for that.
        { type: "user", path: USER_NAMESPACE },
        ...["pid", "network", "ipc", "uts", "mount", "cgroup"].map((type) => ({ type })),
      ],
      uidMappings: ids,
      gidMappings: ids,
      cgroupsPath: `/engine-${cgroup.name}`,
      resources: { devices: [{ allow: false, access: "rwm" }] },
      seccomp: ociSeccomp(architecture()),
      maskedPaths: [...HIDDEN_FILES, ...HIDDEN_FOLDERS],
      readonlyPaths: READ_ONLY,
    },
  };
}

function architecture(): "x64" | "arm64" {
  if (process.arch === "x64" || process.arch === "arm64") return process.arch;
  throw new RuntimeError("unable", `there are no sandboxes on processors of the kind ${process.arch}`);
}

type OciMount = { destination: string; type: string; source: string; options: readonly string[] };

function inMemory(destination: string, ...options: readonly string[]): OciMount {
  return { destination, type: "tmpfs", source: "tmpfs", options: ["nosuid", ...options] };
}

function systemMounts({ terminals }: UserLimits): OciMount[] {
  const ownTerminals = ["newinstance", "ptmxmode=0666", "mode=0620", `gid=${TTY_GID}`, `max=${terminals}`];
  return [
    { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "nodev", "noexec"] },
    inMemory("/dev", "strictatime", "mode=755", "size=65536k"),
    { destination: "/dev/pts", type: "devpts", source: "devpts", options: ["nosuid", "noexec", ...ownTerminals] },
    inMemory("/dev/shm", "nodev", "mode=1777", `size=${SHARED_MEMORY_BYTES}`),
    inMemory("/run", "nodev", "mode=755", `size=${RUN_BYTES}`),
    {
      destination: FIRST_PROCESS,
      type: "bind",
      source: "/tmp/first-process",
      options: ["bind", "ro", "nosuid", "nodev"],
    },
  ];
}

/** Targets are made below the root by the runtime, which follows no link out of it. */
function volumeMount({ mountPath, readOnly }: LaunchRequest["record"]["volumes"][number], index: number): OciMount {
  const options = ["rbind", readOnly ? "ro" : "rw", "nosuid", "nodev"];
  return { destination: mountPath, type: "bind", source: `/tmp/volume-${index}`, options };
}

import { chmod, chown, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CgroupLimits } from "./cgroups/cgroups-controllers.ts";
import { firstProcess } from "./first-process.ts";
import { lookAt, mustNotLead } from "./inside-paths.ts";
import type { Launch, LaunchRequest, Launcher } from "./launcher.ts";
import { FIRST_PROCESS, ociMachine, RUN_BYTES, SHARED_MEMORY_BYTES } from "./oci.ts";
import { signaller } from "./signaller.ts";

const OPEN_FILES = 65_536;
const SIGNALLER = "/dev/signaller";
/** On the host: threads of its kernel, and those of one process inside with the command line that began it. */
const KERNEL_TASKS = 256;
const TASKS_OF_PROCESS = 12;

/**
 * Machines by runsc (gVisor): each has a kernel of its own, a process of the host, which makes few system calls itself.
 * Programs inside never talk to the host's kernel.
 *
 * The supervisor makes a user namespace with all ids of the machine and starts runsc in it as its root, as it does with
 * bubblewrap; runsc stays, and what it starts dies with it. Its kernel's processes are in the machine's cgroup, so they
 * are limited, stand still and are killed together; how many processes there are inside is limited inside.
 *
 * The machine's network is that of a namespace of the host with nothing but loopback (`--network=host` is in there), so
 * that its ports can be reached and its proxy can listen. Files are on the host where they are with other launchers, and
 * nothing of them is kept inside (`--overlay2=none`, `--file-access=shared`): who changes them on the host changes them
 * inside.
 */
export function runscLauncher(program: string): Launcher {
  return {
    name: "runsc",
    hasOwnKernel: true,
    groupLimits,
    prepare: (request) => prepare(program, request),
    forget: () => Promise.resolve(),
  };
}

function groupLimits(limits: CgroupLimits): CgroupLimits {
  return { ...limits, maxProcesses: KERNEL_TASKS + TASKS_OF_PROCESS * limits.maxProcesses };
}

async function prepare(program: string, request: LaunchRequest): Promise<Launch> {
  const { folder, record, firstHostId } = request;
  const { volumes } = record;
  const covered = ["proc", "sys", "dev", "run", "tmp", ...volumes.map((volume) => volume.mountPath)];
  await Promise.all(covered.map((path) => mustNotLead(folder.root, path)));
  await makeTemporaryFolder(join(folder.root, "tmp"), firstHostId);
  const bundle = join(folder.path, "bundle");
  const run = join(folder.path, "runsc");
  await rm(run, { recursive: true, force: true });
  await Promise.all([mkdir(bundle, { recursive: true }), mkdir(run)]);
  await Promise.all([chmod(bundle, 0o755), chown(run, firstHostId, firstHostId)]);
  await Promise.all([
    writeFile(join(bundle, "config.json"), JSON.stringify(ociConfig(request)), { mode: 0o644 }),
    writeFile(join(bundle, "first-process"), firstProcess(process.arch, 0), { mode: 0o755 }),
    writeFile(join(bundle, "signaller"), signaller(process.arch), { mode: 0o755 }),
  ]);
  const options = [
    "--root=/tmp/runsc",
    "--network=host",
    "--ignore-cgroups",
    "--overlay2=none",
    "--file-access=shared",
  ];
  return {
    command: [program, ...options, "run", "--bundle=/tmp/bundle", "--pid-file=/tmp/runsc/pid", record.cgroup],
    passed: [],
    staged: [
      { from: folder.root, name: "root" },
      { from: bundle, name: "bundle" },
      { from: run, name: "runsc" },
      ...volumes.map(({ path }, index) => ({ from: path, name: `volume-${index}` })),
    ],
    copied: [],
    inUserNamespace: true,
    // Its kernel has terminals of its own.
    terminals: undefined,
    pidFrom: undefined,
    ownKernel: {
      exec: [program, ...options, "exec"],
      machine: record.cgroup,
      signaller: SIGNALLER,
      pidFile: join(run, "pid"),
    },
  };
}

/** Where there is none, or an empty one that is not mounted, runsc has one in memory, which is seen from inside alone. */
async function makeTemporaryFolder(path: string, owner: number): Promise<void> {
  if ((await lookAt(path)) !== undefined) return;
  await mkdir(path);
  await chown(path, owner, owner);
  await chmod(path, 0o1777);
}

/** The configuration of the OCI runtime specification, 1.0. Ids in it are those of the user namespace that runsc is in. */
function ociConfig({ record }: LaunchRequest): object {
  const { process, ...machine } = ociMachine({ record });
  return {
    ...machine,
    process: {
      ...process,
      rlimits: [
        limit("RLIMIT_NPROC", record.limits.maxProcesses),
        limit("RLIMIT_NOFILE", OPEN_FILES),
        limit("RLIMIT_CORE", 0),
      ],
    },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc" },
      inMemory("/dev/shm", "mode=1777", `size=${SHARED_MEMORY_BYTES}`),
      inMemory("/run", "mode=755", `size=${RUN_BYTES}`),
      bound("/tmp", "/tmp/root/tmp", false),
      bound(FIRST_PROCESS, "/tmp/bundle/first-process", true),
      bound(SIGNALLER, "/tmp/bundle/signaller", true),
      ...record.volumes.map(({ mountPath, readOnly }, index) => bound(mountPath, `/tmp/volume-${index}`, readOnly)),
    ],
    linux: { namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })) },
  };
}

function limit(type: string, most: number): object {
  return { type, soft: most, hard: most };
}

function inMemory(destination: string, ...options: readonly string[]): object {
  return { destination, type: "tmpfs", source: "tmpfs", options: ["nosuid", "nodev", ...options] };
}

function bound(destination: string, source: string, isReadOnly: boolean): object {
  return { destination, type: "bind", source, options: ["rbind", isReadOnly ? "ro" : "rw", "nosuid", "nodev"] };
}

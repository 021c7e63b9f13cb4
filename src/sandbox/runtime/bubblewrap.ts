import type { Stats } from "node:fs";
import { HIDDEN_FILES, HIDDEN_FOLDERS, READ_ONLY } from "./hidden-files.ts";
import { lookAt, mustNotLead } from "./inside-paths.ts";
import { EMPTY_FILE, EMPTY_FOLDER, type Launch, type LaunchRequest, type Launcher, READY_FD } from "./launcher.ts";

const INFO_FD = 4;
const FIRST_PROCESS_FD = 5;
const FILTER_FD = 6;

/** Of memory, which it counts as. */
const SHARED_MEMORY_BYTES = 1024 * 1024 * 1024;
const RUN_BYTES = 64 * 1024 * 1024;

/**
 * Machines by bubblewrap 0.8 or newer, which need not be installed setuid.
 *
 * Started by the host's root it would map the machine's root to that, and in a user namespace of its own it maps one id.
 * So the supervisor makes the user namespace with all ids first and starts bubblewrap in it as its root: it then makes
 * all other namespaces as that namespace's, with no power over anything of the host. Without `--cap-drop ALL` the first
 * process would keep every capability there; it gets the two by which it becomes the agent, and has none after that.
 * Bubblewrap waits for the end of what it starts; the supervisor kills it as soon as the first process is in place.
 */
export function bubblewrapLauncher(program: string): Launcher {
  return {
    name: "bubblewrap",
    hasOwnKernel: false,
    groupLimits: (limits) => limits,
    prepare: (request) => prepare(program, request),
    forget: () => Promise.resolve(),
  };
}

async function prepare(program: string, request: LaunchRequest): Promise<Launch> {
  const { folder, record, firstProcessFile, filterFile, userLimits } = request;
  const { volumes } = record;
  await Promise.all(
    ["proc", "dev", "run", ...volumes.map((volume) => volume.mountPath)].map((path) => mustNotLead(folder.root, path)),
  );
  return {
    command: [
      [program],
      namespaces(),
      ["--bind", "/tmp/root", "/"],
      await processFiles(),
      ["--dev", "/dev"],
      ["--perms", "1777", "--size", String(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"],
      ["--perms", "0755", "--size", String(RUN_BYTES), "--tmpfs", "/run"],
      ["--perms", "1777", "--dir", "/tmp"],
      ...volumes.map(({ mountPath, readOnly }, index) =>
        foldersAbove(mountPath)
          .flatMap((path) => ["--perms", "0755", "--dir", path])
          .concat(readOnly ? "--ro-bind" : "--bind", `/tmp/volume-${index}`, mountPath),
      ),
      ["--perms", "0555", "--ro-bind-data", String(FIRST_PROCESS_FD), "/dev/first-process"],
      ["--seccomp", String(FILTER_FD), "--info-fd", String(INFO_FD)],
      ["--", "/dev/first-process"],
    ].flat(),
    passed: [
      { fd: FIRST_PROCESS_FD, file: firstProcessFile },
      { fd: FILTER_FD, file: filterFile },
    ],
    staged: [
      { from: folder.root, name: "root" },
      ...volumes.map(({ path }, index) => ({ from: path, name: `volume-${index}` })),
    ],
    copied: [],
    inUserNamespace: true,
    terminals: userLimits.terminals,
    pidFrom: { fd: INFO_FD },
    ownKernel: undefined,
  };
}

/** The first process is the first of its pid namespace itself, and has descriptor 3 (`READY_FD`), as all that are open. */
function namespaces(): string[] {
  if (READY_FD >= INFO_FD) throw new RangeError("descriptors overlap");
  return [
    ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"],
    ["--as-pid-1", "--clearenv", "--chdir", "/"],
    ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"],
  ].flat();
}

/** Those that bubblewrap makes by itself for a mount are closed to all but root. */
function foldersAbove(path: string): string[] {
  const parts = path.split("/").filter(Boolean);
  return parts.slice(0, -1).map((_part, index) => `/${parts.slice(0, index + 1).join("/")}`);
}

async function processFiles(): Promise<string[]> {
  return [
    "--proc",
    "/proc",
    ...(await thoseThere(READ_ONLY)).flatMap((path) => ["--ro-bind", path, path]),
    ...(await thoseThere(HIDDEN_FILES, mayAllRead)).flatMap((path) => ["--ro-bind", EMPTY_FILE, path]),
    ...(await thoseThere(HIDDEN_FOLDERS)).flatMap((path) => ["--ro-bind", EMPTY_FOLDER, path]),
  ];
}

async function thoseThere(paths: readonly string[], isWanted = (_stats: Stats) => true): Promise<string[]> {
  const found = await Promise.all(paths.map(lookAt));
  return paths.filter((_path, index) => {
    const stats = found[index];
    return stats !== undefined && isWanted(stats);
  });
}

/** What only the host's root may read nobody inside can: there is no such user. Each mount makes a start slower. */
function mayAllRead({ mode }: Stats): boolean {
  return (mode & 0o004) !== 0;
}

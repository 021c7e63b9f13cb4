import type { CgroupLimits } from "./cgroups/cgroups-controllers.ts";
import type { Cgroup } from "./cgroups/cgroups.ts";
import type { MachineFolder, MachineRecord } from "./folder.ts";
import type { ImagePlace } from "./images/images.ts";
import type { Runtime } from "./runtime.ts";
import type { UserLimits } from "./user-limits.ts";

/**
 * What makes the namespaces of a machine and starts its first process in them: the part in which the drivers differ. It
 * is run by the supervisor, as root.
 */
export interface Launcher {
  readonly name: Runtime["name"];
  /** Whether its machines have kernels of their own, which nothing of the host can enter. */
  readonly hasOwnKernel: boolean;
  /** Limits of the group of processes that is such a machine on the host. */
  groupLimits(limits: CgroupLimits): CgroupLimits;
  /** Writes what it needs into the machine's folder, and says how it is run. */
  prepare(request: LaunchRequest): Promise<Launch>;
  /** Removes what it keeps of a machine outside of the machine's folder. Repeatable. */
  forget(folder: MachineFolder): Promise<void>;
}

export type LaunchRequest = {
  folder: MachineFolder;
  record: MachineRecord;
  image: ImagePlace;
  cgroup: Cgroup;
  firstHostId: number;
  /** The first process's program (`first-process.ts`), a file that everybody may run. */
  firstProcessFile: string;
  /** System calls that are allowed: an array of `struct sock_filter`. */
  filterFile: string;
  userLimits: UserLimits;
};

/**
 * On which the first process says that it is ready; it must get it, and standard output and error. With a kernel of its
 * own it is standard input, as a runtime passes no other descriptors on.
 */
export const READY_FD = 3;

export const USER_NAMESPACE = "/tmp/user-namespace";
/** Which all may read, and in which there is nothing: there for all launchers. */
export const EMPTY_FILE = "/tmp/empty";
export const EMPTY_FOLDER = "/tmp/empty-folder";

export type Launch = {
  /** Program, by its path, and arguments. */
  command: readonly string[];
  /** Files that it gets opened for reading, each by this number from 5 on. */
  passed: readonly { fd: number; file: string }[];
  /** Folders that it finds at `/tmp/NAME`. */
  staged: readonly { from: string; name: string }[];
  /** Small programs of which it finds copies there: a mount of the file itself tells where on the host that is. */
  copied: readonly { from: string; name: string }[];
  /**
   * Whether it is to be started as the root of the machine's user namespace. Otherwise that is at `USER_NAMESPACE` for
   * it, as files of namespaces are.
   */
  inUserNamespace: boolean;
  /** How many there can be, where the launcher cannot limit them itself. */
  terminals: number | undefined;
  /**
   * How the first process's pid becomes known: by JSON with `child-pid` on this descriptor, and the launcher, which would
   * wait for the machine's end, is killed; or by a file that it writes before it ends by itself. Not at all where the
   * machine has a kernel of its own.
   */
  pidFrom: { fd: number } | { file: string } | undefined;
  /** The launcher stays for as long as the machine, and stands for it; it dies with the supervisor. */
  ownKernel: OwnKernel | undefined;
};

/** What commands are begun by in a machine that no process of the host can enter. */
export type OwnKernel = {
  /** Program, by its path, and arguments; more of them after the first, and after all. */
  exec: readonly string[];
  /** What the runtime calls the machine. */
  machine: string;
  /** A program inside that sends the signals which it reads: `signaller.ts`. */
  signaller: string;
  /** Written by the launcher: the process whose network is the machine's, on the host. */
  pidFile: string;
};

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { openImages, type ImagePlace } from "../../src/sandbox/runtime/images/images.ts";
import { changeMounts } from "../../src/sandbox/runtime/mounts.ts";
import { removeUnmounted } from "../../src/sandbox/runtime/removal.test-kit.ts";
import { ociSeccomp } from "../../src/sandbox/runtime/seccomp-oci.ts";

const run = promisify(execFile);
const ID_COUNT = 65_536;
const AGENT = 1000;

export type ByHandOptions = { cpuCores: number; memoryMb: number; diskMb: number; maxProcesses: number };

/**
 * The peer: what somebody does by hand who wants the same machine from `runc`: a sized ext4 disk in a file, an overlay of
 * an image and that disk, the same namespaces, ids, system calls and limits; `runc run`, and then `runc exec`.
 */
export class RuncByHand {
  readonly #folder: string;
  readonly #image: ImagePlace;
  readonly #options: ByHandOptions;
  #count = 0;

  private constructor(folder: string, image: ImagePlace, options: ByHandOptions) {
    this.#folder = folder;
    this.#image = image;
    this.#options = options;
  }

  static async open(options: ByHandOptions): Promise<RuncByHand> {
    const folder = await mkdtemp(join(tmpdir(), "engine-bench-runc-"));
    // The machine's own ids come in as well.
    await chmod(folder, 0o755);
    const images = await openImages({ folder: join(folder, "images") });
    const image = await images.get(undefined);
    const path = join(folder, "image-ids");
    await mkdir(path);
    await changeMounts([["mapped", image.path, path, String(FIRST_HOST_ID), String(ID_COUNT), "ro"]]);
    return new RuncByHand(folder, { ...image, path }, options);
  }

  async create(): Promise<HandMadeMachine> {
    const id = `engine-bench-${process.pid}-${(this.#count += 1)}`;
    const [at, disk, image] = [join(this.#folder, id), join(this.#folder, id, "disk"), this.#image];
    const root = join(at, "root");
    await Promise.all([disk, root].map((folder) => mkdir(folder, { recursive: true })));
    const file = join(at, "disk.ext4");
    await run("truncate", ["-s", `${this.#options.diskMb}M`, file]);
    await run("mkfs.ext4", ["-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", "-m", "0", file]);
    await run("mount", ["-o", "loop,nosuid,nodev,noatime", file, disk]);
    await run("mkdir", [join(disk, "upper"), join(disk, "work")]);
    await run("chown", [`${FIRST_HOST_ID}:${FIRST_HOST_ID}`, join(disk, "upper")]);
    const layers = `lowerdir=${image.path},upperdir=${disk}/upper,workdir=${disk}/work,volatile`;
    await run("mount", ["-t", "overlay", "overlay", "-o", layers, root]);
    await writeFile(join(at, "config.json"), JSON.stringify(configOf(root, image, this.#options)));
    const made = new HandMadeMachine(id, at, { root, disk });
    // Its standard output is that of the machine, which lasts.
    const started = spawn("runc", ["run", "--detach", "--bundle", at, id], { stdio: ["ignore", "ignore", "inherit"] });
    const [code] = await once(started, "exit");
    if (code === 0) return made;
    await made.remove();
    throw new Error(`runc run ended with ${code}`);
  }

  async close(): Promise<void> {
    await run("umount", ["--recursive", this.#image.path]);
    await removeUnmounted(this.#folder);
  }
}

/** Ids that the engine's default leaves free. */
const FIRST_HOST_ID = 0x7100_0000;

export class HandMadeMachine {
  readonly id: string;
  readonly #at: string;
  readonly #mounts: { root: string; disk: string };

  constructor(id: string, at: string, mounts: { root: string; disk: string }) {
    this.id = id;
    this.#at = at;
    this.#mounts = mounts;
  }

  async exec(argv: readonly string[]): Promise<string> {
    const { stdout } = await run("runc", ["exec", this.id, ...argv]);
    return stdout;
  }

  async pauseAndResume(): Promise<void> {
    await run("runc", ["pause", this.id]);
    await run("runc", ["resume", this.id]);
  }

  async remove(): Promise<void> {
    await run("runc", ["delete", "--force", this.id]);
    await run("umount", [this.#mounts.root]);
    await run("umount", [this.#mounts.disk]);
    await removeUnmounted(this.#at);
  }
}

function configOf(root: string, image: ImagePlace, { cpuCores, memoryMb, maxProcesses }: ByHandOptions): object {
  const ids = [{ containerID: 0, hostID: FIRST_HOST_ID, size: ID_COUNT }];
  const bound = { destination: "/usr", type: "bind", source: "/usr", options: ["rbind", "ro"] };
  return {
    ociVersion: "1.0.2",
    root: { path: root },
    hostname: "sandbox",
    process: {
      terminal: false,
      user: { uid: AGENT, gid: AGENT },
      args: ["/usr/bin/sleep", "infinity"],
      env: ["PATH=/usr/bin:/bin"],
      cwd: "/",
      capabilities: { bounding: [], effective: [], permitted: [] },
      noNewPrivileges: true,
    },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "nodev", "noexec"] },
      inMemory("/dev"),
      inMemory("/dev/shm"),
      inMemory("/run"),
      ...(image.usesHostUsr ? [bound] : []),
    ],
    linux: {
      namespaces: ["user", "pid", "network", "ipc", "uts", "mount", "cgroup"].map((type) => ({ type })),
      uidMappings: ids,
      gidMappings: ids,
      resources: {
        devices: [{ allow: false, access: "rwm" }],
        memory: { limit: memoryMb * 1024 * 1024 },
        cpu: { quota: cpuCores * 100_000, period: 100_000 },
        pids: { limit: maxProcesses },
      },
      seccomp: ociSeccomp(process.arch === "arm64" ? "arm64" : "x64"),
    },
  };
}

function inMemory(destination: string): object {
  return { destination, type: "tmpfs", source: "tmpfs", options: ["nosuid"] };
}

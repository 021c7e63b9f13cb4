import { execFile, spawnSync, type ExecFileException } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomUUID } from "node:crypto";
import { lacking } from "../../../core/capabilities.test-kit.ts";
import { cageProblem } from "../../runtime/cage.test-kit.ts";
import { removeUnmounted } from "../../runtime/removal.test-kit.ts";
import type { FilesTarget } from "./target.ts";

/** Why no machine can be made here; empty where one can. */
export function whyNoMachine(): string {
  if (cageProblem !== undefined) return cageProblem;
  return lacking("runc", "mkfs.ext4", "perl") ?? "";
}

/** Ids of the host that are nobody's. */
const FIRST_HOST_ID = 1_610_612_736;

/**
 * A machine made by runc, with an overlay on a disk of its own as its root, `/usr` of the host, a private `/proc`, `/dev`
 * and `/tmp`: what exec sees is asked by `runc exec`.
 */
export type TestMachine = {
  readonly folder: string;
  readonly root: string;
  readonly pid: number;
  target(): Promise<FilesTarget>;
  /** Runs `sh -c` inside; rejects when it fails. The output, as bytes in latin1. */
  sh(script: string, user?: "agent" | "root"): Promise<string>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** All processes end, the disk stays; `target` then names the mounted root. */
  stop(): Promise<void>;
  /** How many mounted roots are held. */
  held: number;
  remove(): Promise<void>;
};

export async function startMachine({ diskMb = 64 } = {}): Promise<TestMachine> {
  const folder = mkdtempSync(join(tmpdir(), "files-machine-"));
  const id = `files-test-${randomUUID()}`;
  const root = join(folder, "root");
  const runc = (...words: string[]): Promise<string> => run("runc", ["--root", join(folder, "state"), ...words]);
  let isRunning = false;
  let held = 0;
  const remove = async (): Promise<void> => {
    if (isRunning) await runc("delete", "--force", id);
    for (const name of ["root", "writable"]) await run("umount", [join(folder, name)]).catch(() => undefined);
    await removeUnmounted(folder);
  };
  try {
    await makeRoot(folder, diskMb);
    writeFileSync(join(folder, "config.json"), JSON.stringify(ociConfig(root, id)));
    // Its first process would keep our pipes open.
    const begin = ["--root", join(folder, "state"), "run", "--detach", "--bundle", folder, "--pid-file"];
    const begun = spawnSync("runc", [...begin, join(folder, "pid"), id], { stdio: "ignore" });
    if (begun.status !== 0) throw new Error("runc did not start a machine");
  } catch (error) {
    await remove();
    throw error;
  }
  isRunning = true;
  const pid = Number(readFileSync(join(folder, "pid"), "utf8"));
  const release = async (): Promise<void> => void held--;
  return {
    folder,
    root,
    pid,
    async target() {
      if (isRunning) return { kind: "live", pid };
      held++;
      return { kind: "mounted", root, firstHostId: FIRST_HOST_ID, covered: ["/tmp", "/proc", "/dev", "/sys"], release };
    },
    sh: (script, user = "agent") => {
      const ids = user === "agent" ? "1000:1000" : "0:0";
      return runc("exec", "--user", ids, "--cwd", "/", id, "/usr/bin/sh", "-c", script);
    },
    pause: async () => void (await runc("pause", id)),
    resume: async () => void (await runc("resume", id)),
    async stop() {
      await runc("delete", "--force", id);
      isRunning = false;
    },
    get held() {
      return held;
    },
    remove,
  };
}

/** The image is a folder of the host, what is written goes to a disk of its own (ext4 in a file). */
async function makeRoot(folder: string, diskMb: number): Promise<void> {
  const at = (name: string): string => join(folder, name);
  spawnSync("chmod", ["755", folder]);
  writeFileSync(at("disk"), "");
  truncateSync(at("disk"), diskMb * 1024 * 1024);
  await run("mkfs.ext4", ["-q", "-O", "^has_journal", "-m", "0", "-N", "20000", at("disk")]);
  for (const name of ["image", "writable", "root"]) mkdirSync(at(name));
  await run("mount", ["-o", "loop,nosuid,nodev", at("disk"), at("writable")]);
  for (const name of ["upper", "work"]) mkdirSync(at(`writable/${name}`));
  makeImage(at("image"));
  chownSync(at("writable/upper"), FIRST_HOST_ID, FIRST_HOST_ID);
  const layers = `lowerdir=${at("image")},upperdir=${at("writable/upper")},workdir=${at("writable/work")}`;
  await run("mount", ["-t", "overlay", "-o", `nosuid,nodev,${layers}`, "overlay", at("root")]);
}

function makeImage(image: string): void {
  for (const name of ["usr", "etc", "proc", "dev", "tmp", "sys", "home", "root"]) mkdirSync(join(image, name));
  for (const name of ["bin", "lib", "lib64"]) symlinkSync(`usr/${name}`, join(image, name));
  mkdirSync(join(image, "home/agent"));
  writeFileSync(join(image, "home/agent/of-the-image"), "image");
  spawnSync("chown", ["-R", `${FIRST_HOST_ID}:${FIRST_HOST_ID}`, image]);
  spawnSync("chown", ["-R", `${FIRST_HOST_ID + 1000}:${FIRST_HOST_ID + 1000}`, join(image, "home/agent")]);
  chmodSync(join(image, "tmp"), 0o1777);
}

function ociConfig(root: string, id: string): unknown {
  const maps = [{ containerID: 0, hostID: FIRST_HOST_ID, size: 65_536 }];
  const capabilities = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER"];
  return {
    ociVersion: "1.0.2",
    process: {
      user: { uid: 0, gid: 0 },
      args: ["/usr/bin/sleep", "900"],
      env: ["PATH=/usr/bin:/usr/sbin"],
      cwd: "/",
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      noNewPrivileges: true,
    },
    root: { path: root },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc" },
      { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=64k"] },
      { destination: "/tmp", type: "tmpfs", source: "tmpfs", options: ["nosuid", "nodev", "mode=1777", "size=16m"] },
      { destination: "/usr", type: "bind", source: "/usr", options: ["rbind", "ro", "nosuid", "nodev"] },
    ],
    linux: {
      uidMappings: maps,
      gidMappings: maps,
      cgroupsPath: `/${id}`,
      // What tests do in it is hostile.
      resources: { pids: { limit: 128 }, memory: { limit: 256 * 1024 * 1024 } },
      namespaces: ["pid", "ipc", "uts", "mount", "network", "user"].map((type) => ({ type })),
    },
  };
}

function run(file: string, words: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const done = (error: ExecFileException | null, stdout: string, stderr: string): void => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${file} ${words.join(" ").slice(0, 200)}: ${stderr || error.message}`));
    };
    const child = execFile(file, words, { encoding: "latin1", maxBuffer: 1 << 26 }, done);
    child.stdin?.end();
  });
}

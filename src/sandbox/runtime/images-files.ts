import { access, chmod, chown, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AGENT_GID, AGENT_UID } from "./runtime.ts";

/** Files that every image has in its `/etc`, whatever the host has there. */
const ETC: Readonly<Record<string, string>> = {
  hostname: "sandbox\n",
  hosts: "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
  "resolv.conf": "# Names are resolved by the proxy; there is no name server inside.\n",
};

/** Folders with modes; all belong to root but the agent's home. */
const FOLDERS: Readonly<Record<string, number>> = {
  dev: 0o755,
  etc: 0o755,
  home: 0o755,
  mnt: 0o755,
  opt: 0o755,
  proc: 0o755,
  root: 0o700,
  run: 0o755,
  srv: 0o755,
  sys: 0o755,
  tmp: 0o1777,
  usr: 0o755,
  var: 0o755,
  "var/cache": 0o755,
  "var/lib": 0o755,
  "var/log": 0o755,
  "var/tmp": 0o1777,
};

export const AGENT_HOME = "/home/agent";

/** Makes the folders that every root has, the agent's home, and the files that say who and where one is. */
export async function writeCommonFiles(root: string): Promise<void> {
  for (const [name, mode] of Object.entries(FOLDERS)) await makeFolder(join(root, name), mode);
  const home = join(root, AGENT_HOME);
  await makeFolder(home, 0o750);
  await chown(home, AGENT_UID, AGENT_GID);
  await writeFiles(join(root, "etc"), ETC);
}

/** Modes are set again: the umask takes bits away. */
async function makeFolder(path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true });
  await chmod(path, mode);
}

/** Writes files by their paths below a folder, readable by all. */
export async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
    await chmod(path, 0o644);
  }
}

export async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

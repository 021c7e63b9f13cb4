import { constants } from "node:fs";
import { access, chmod, chown, lstat, mkdir, open, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { systemCodeOf } from "../../../core/errors.ts";
import { AGENT_GID, AGENT_UID } from "../runtime.ts";

/** Files of `/etc` that say what a machine is called. */
function hostFiles(hostname: string): Readonly<Record<"hostname" | "hosts", string>> {
  // On a line of its own: the first name of a line is the full one of the others.
  const hosts = `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.0.1 ${hostname}\n`;
  return { hostname: `${hostname}\n`, hosts };
}

/** Files that every image has in its `/etc`, whatever the host has there. */
const ETC: Readonly<Record<string, string>> = {
  ...hostFiles("sandbox"),
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

/**
 * Writes what a machine is called into its root, in which nothing of its owner has run yet: what leads out of it would be
 * followed otherwise. Where an image has a link or no `/etc`, it has its own way, and is left as it is.
 */
export async function writeHostFiles(root: string, hostname: string, ownerId: number): Promise<void> {
  const etc = join(root, "etc");
  try {
    if (!(await lstat(etc)).isDirectory()) return;
    await Promise.all(
      Object.entries(hostFiles(hostname)).map(([name, text]) => rewriteFile(join(etc, name), text, ownerId)),
    );
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT" && systemCodeOf(error) !== "ELOOP") throw error;
  }
}

async function rewriteFile(path: string, text: string, ownerId: number): Promise<void> {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  const file = await open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o644);
  try {
    await file.writeFile(text);
    await file.chown(ownerId, ownerId);
  } finally {
    await file.close();
  }
}

export async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, mkdtemp, readdir, readlink, rename, rm, symlink, chmod } from "node:fs/promises";
import { dirname, join } from "node:path";
import { systemCodeOf } from "../../../core/errors.ts";
import { AGENT_HOME, isThere, writeCommonFiles, writeFiles } from "./images-files.ts";
import { AGENT_GID, AGENT_UID, RuntimeError } from "../runtime.ts";

/** Links at the root that lead into `/usr`. */
const LINKS = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/**
 * What of the host's `/etc` programs of its `/usr` do not work without, and nothing else of it: which of several
 * programs has a name, where libraries are, whom to trust, names of protocols, the time zone, and what the Java runtime
 * keeps there. Of these, only what everybody may read.
 */
const TAKEN = [
  /^alternatives$/,
  /^java-[^/]+$/,
  /^ld\.so\.(cache|conf|conf\.d)$/,
  /^localtime$/,
  /^mime\.types$/,
  /^(protocols|services)$/,
  /^pki\/(tls\/certs|ca-trust\/extracted)$/,
  /^ssl\/(certs|openssl\.cnf)$/,
];

const WRITTEN: Readonly<Record<string, string>> = {
  passwd: [
    "root:x:0:0:root:/root:/bin/bash",
    `agent:x:${AGENT_UID}:${AGENT_GID}:agent:${AGENT_HOME}:/bin/bash`,
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
    "",
  ].join("\n"),
  group: ["root:x:0:", "tty:x:5:", `agent:x:${AGENT_GID}:`, "nogroup:x:65534:", ""].join("\n"),
  "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nprotocols: files\nservices: files\n",
  profile: "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nexport PATH\n",
};

/**
 * Makes the image of the host in a folder: `rootfs` links to a build for what the host has at this moment, which is made
 * where it is not there. Repeatable; also by several processes. Rejects with `RuntimeError` `unable` when the host's
 * programs are not all in `/usr`.
 */
export async function buildHost(folder: string): Promise<void> {
  const links = await hostLinks();
  const taken = await takenFiles();
  const print = createHash("sha256").update(JSON.stringify([links, taken, WRITTEN]));
  const build = `build-${print.digest("hex").slice(0, 16)}`;
  await mkdir(folder, { recursive: true, mode: 0o755 });
  if (!(await isThere(join(folder, build)))) await makeBuild(join(folder, build), links, taken);
  await linkTo(build, join(folder, "rootfs"));
}

/** Where the host's `/bin` and so on lead. */
async function hostLinks(): Promise<[name: string, target: string][]> {
  const links: [string, string][] = [];
  for (const name of LINKS) {
    try {
      links.push([name, await readlink(`/${name}`)]);
    } catch (error) {
      if (systemCodeOf(error) === "EINVAL") throw new RuntimeError("unable", `/${name} is not a link into /usr`);
      if (systemCodeOf(error) !== "ENOENT") throw error;
    }
  }
  return links;
}

type Taken = { path: string; link: string | undefined; modifiedMs: number };

/** Files and links below `/etc`, by path. */
async function takenFiles(): Promise<Taken[]> {
  const taken: Taken[] = [];
  const names = await Promise.all(["", "pki/tls", "pki/ca-trust", "ssl"].map(namesIn));
  for (const path of names.flat().filter((path) => TAKEN.some((wanted) => wanted.test(path)))) await take(path, taken);
  return taken.sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(join("/etc", folder))).map((name) => (folder === "" ? name : `${folder}/${name}`));
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return [];
    throw error;
  }
}

async function take(path: string, taken: Taken[]): Promise<void> {
  const stats = await lstat(join("/etc", path));
  const mayAllRead = (stats.mode & constants.S_IROTH) !== 0;
  if (stats.isSymbolicLink()) {
    taken.push({ path, link: await readlink(join("/etc", path)), modifiedMs: 0 });
  } else if (stats.isDirectory() && mayAllRead) {
    for (const name of await readdir(join("/etc", path))) await take(`${path}/${name}`, taken);
  } else if (stats.isFile() && mayAllRead) {
    taken.push({ path, link: undefined, modifiedMs: stats.mtimeMs });
  }
}

async function makeBuild(build: string, links: readonly [string, string][], taken: readonly Taken[]): Promise<void> {
  const fresh = await mkdtemp(`${build}.`);
  try {
    await writeCommonFiles(fresh);
    await writeFiles(join(fresh, "etc"), WRITTEN);
    for (const [name, target] of links) await symlink(target, join(fresh, name));
    for (const file of taken) await copyTaken(file, join(fresh, "etc", file.path));
    await chmod(fresh, 0o755);
    await rename(fresh, build);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    // Another process was faster.
    if (systemCodeOf(error) !== "ENOTEMPTY" && systemCodeOf(error) !== "EEXIST") throw error;
  }
}

async function copyTaken({ path, link }: Taken, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o755 });
  if (link === undefined) await copyFile(join("/etc", path), to, constants.COPYFILE_EXCL);
  else await symlink(link, to);
}

/** A link is replaced in one step. */
async function linkTo(target: string, path: string): Promise<void> {
  if ((await readlink(path).catch(() => undefined)) === target) return;
  const folder = await mkdtemp(`${path}.`);
  await symlink(target, join(folder, "link"));
  await rename(join(folder, "link"), path);
  await rm(folder, { recursive: true });
}

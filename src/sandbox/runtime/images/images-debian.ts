import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { AGENT_HOME, isThere, writeCommonFiles, writeFiles } from "./images-files.ts";
import { runProgram } from "../mounts.ts";
import { AGENT_GID, AGENT_UID } from "../runtime.ts";

/** Where Debian comes from. Defaults: the current stable release, from the project's own servers. */
export type DebianSource = { suite?: string; mirror?: string };

const SUITE = "bookworm";
const MIRROR = "http://deb.debian.org/debian";
const PACKAGES = ["ca-certificates", "curl", "git", "python3-minimal"];

const LEFT_OUT = ["usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man"];

/** Services are not started by their packages; packages bring only what they need, and no manuals. */
const FILES: Readonly<Record<string, string>> = {
  "usr/sbin/policy-rc.d": "#!/bin/sh\nexit 101\n",
  "etc/dpkg/dpkg.cfg.d/90sandbox": [
    "force-unsafe-io",
    ...LEFT_OUT.map((folder) => `path-exclude=/${folder}/*`),
    "path-include=/usr/share/doc/*/copyright",
    "",
  ].join("\n"),
  "etc/apt/apt.conf.d/90sandbox": 'APT::Install-Recommends "false";\nAcquire::Languages "none";\n',
};

/** Debootstrap checks signatures only when it is told to insist on it. What is left of an attempt is removed first. */
const SCRIPT = `
folder=$1 files=$2 suite=$3 mirror=$4 packages=$5 uid=$6 gid=$7 home=$8 left_out=$9
if [ -e "$folder/rootfs" ]; then exit 0; fi
umask 022
new=$folder/new
rm -rf --one-file-system "$new"
trap 'rm -rf --one-file-system "$new"' EXIT
debootstrap --force-check-gpg --variant=minbase --include="$packages" "$suite" "$new" "$mirror" >/dev/null
chroot "$new" groupadd --gid "$gid" agent
chroot "$new" useradd --uid "$uid" --gid "$gid" --home-dir "$home" --create-home --shell /bin/bash agent
cd "$new"
find var/cache/apt var/lib/apt/lists var/log -type f -delete
find $left_out ! -type d ! -name copyright -delete
cd "$folder"
cp -a "$files/." "$new"
chmod 755 "$new/usr/sbin/policy-rc.d"
mv -T "$new" "$folder/rootfs"
`;

/**
 * Makes the image of Debian in a folder: `rootfs` appears when it is complete. Several processes may ask for it: one
 * makes it, the others wait. The lock goes with the process that has it, and so do the mounts of debootstrap, which are
 * in a mount namespace of their own. Rejects with `RuntimeError`.
 */
export async function buildDebian(folder: string, source: DebianSource): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  if (await isThere(join(folder, "rootfs"))) return;
  const { suite = SUITE, mirror = MIRROR } = source;
  const files = await mkdtemp(join(folder, "files-"));
  try {
    await writeCommonFiles(files);
    await writeFiles(files, { ...FILES, "etc/apt/sources.list": sourcesOf(suite, mirror) });
    await chmod(files, 0o755);
    const user = [String(AGENT_UID), String(AGENT_GID), AGENT_HOME];
    const script = [
      "sh",
      "-ec",
      SCRIPT,
      "sh",
      folder,
      files,
      suite,
      mirror,
      PACKAGES.join(","),
      ...user,
      LEFT_OUT.join(" "),
    ];
    await runProgram("flock", [join(folder, "lock"), "unshare", "--mount", ...script]);
  } finally {
    await rm(files, { recursive: true, force: true });
  }
}

/** Updates as well, where the servers are the project's own, whose layout is known. */
function sourcesOf(suite: string, mirror: string): string {
  const lines = [`deb ${mirror} ${suite} main`];
  if (mirror === MIRROR)
    lines.push(`deb ${mirror} ${suite}-updates main`, `deb ${mirror}-security ${suite}-security main`);
  return `${lines.join("\n")}\n`;
}

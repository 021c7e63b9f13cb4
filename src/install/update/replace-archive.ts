import { lstat, mkdir, readdir, readlink, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { CliError } from "../../client/failure.ts";
import { ARCHIVE_VERSIONS } from "../../core/distribution.ts";
import { systemCodeOf } from "../../core/errors.ts";
import type { Random } from "../../core/random.ts";
import { keepAs, readIfThere, removeTemporaries, syncFolder, writeDurably } from "../../core/durable-file.ts";
import type { Artefact, Release } from "../release/manifest.ts";
import { download } from "./download.ts";
import { BEFORE, type Replacement } from "./replacement.ts";
import type { ReleaseSource } from "./source.ts";
import { unpackArchive } from "./unpack-archive.ts";

/**
 * A program that is a folder. A folder cannot take the place of another at once, so later versions are unpacked below it
 * and its launcher `bin/engine`, which is one small file, takes the next version's name by one rename.
 */
export class ArchiveReplacement implements Replacement {
  readonly kind = "archive";
  readonly folder: string;
  readonly #source: ReleaseSource;
  readonly #random: Random;
  readonly #launcher: string;
  readonly #versions: string;
  readonly #id: string;
  #staged: string | undefined;

  constructor(folder: string, { source, random }: { source: ReleaseSource; random: Random }) {
    this.folder = folder;
    this.#source = source;
    this.#random = random;
    this.#launcher = join(folder, "bin", "engine");
    this.#versions = join(folder, ARCHIVE_VERSIONS);
    this.#id = Buffer.from(random.fill(new Uint8Array(4))).toString("hex");
  }

  async tidy(): Promise<void> {
    for (const file of [this.#launcher, `${this.#launcher}${BEFORE}`]) await removeTemporaries(file);
    await this.#removeVersions((name) => name.endsWith(".tmp"));
  }

  async stage({ version }: Release, artefact: Artefact): Promise<string> {
    await mkdir(this.#versions, { recursive: true, mode: 0o755 });
    const [packed, unpacked] = ["tgz", "folder"].map((what) => join(this.#versions, `${this.#id}.${what}.tmp`)) as [
      string,
      string,
    ];
    await download(this.#source, { version, artefact }, packed, 0o600);
    await mkdir(unpacked, { mode: 0o755 });
    await unpackArchive(packed, unpacked);
    await rm(packed);
    const staged = `${version}-${this.#id}`;
    // It is not started by anybody before `commit`, so it may have its name now.
    await rename(await rootOf(unpacked), join(this.#versions, staged));
    await rm(unpacked, { recursive: true, force: true });
    await syncFolder(this.#versions);
    await syncFolder(this.folder);
    this.#staged = staged;
    return join(this.#versions, staged, "bin", "engine");
  }

  async discard(): Promise<void> {
    await this.#removeVersions((name) => name === this.#staged || name.startsWith(`${this.#id}.`));
  }

  async commit(): Promise<void> {
    if (this.#staged === undefined) throw new Error("nothing is staged");
    await keepAs(this.#launcher, `${this.#launcher}${BEFORE}`, this.#random);
    try {
      await writeDurably(this.#launcher, launcherOf(this.#staged), 0o755, this.#random);
    } catch (error) {
      // It may have its new name already.
      await this.revert();
      throw error;
    }
  }

  async revert(): Promise<void> {
    await keepAs(`${this.#launcher}${BEFORE}`, this.#launcher, this.#random);
  }

  async prune(): Promise<void> {
    const launchers = [this.#launcher, `${this.#launcher}${BEFORE}`];
    const used = await Promise.all(launchers.map(async (file) => versionOf((await readIfThere(file)) ?? "")));
    const running = await programsRunning();
    const isRunning = (name: string) => running.some((path) => path.startsWith(join(this.#versions, name, "/")));
    await this.#removeVersions((name) => !used.includes(name) && !isRunning(name));
    // The folder as it was first unpacked: its own program is started by neither.
    if (used.some((name) => name === undefined)) return;
    const [program, marker] = [join(this.folder, "lib", "engine"), join("dist", "distribution.json")];
    if ((await readIfThere(join(program, marker))) === undefined) return;
    if (running.includes(join(this.folder, "node"))) return;
    await rm(join(this.folder, "node"), { force: true });
    await rm(program, { recursive: true, force: true });
  }

  async #removeVersions(isRemoved: (name: string) => boolean): Promise<void> {
    const names = await readdir(this.#versions).catch((error: unknown) => {
      if (systemCodeOf(error) === "ENOENT") return [];
      throw error;
    });
    for (const name of names.filter(isRemoved)) await rm(join(this.#versions, name), { recursive: true, force: true });
  }
}

/** The files that processes of this user run, where the system shows them: whoever runs a version still needs its files. */
async function programsRunning(): Promise<string[]> {
  const names = await readdir("/proc").catch(() => []);
  const ids = names.filter((name) => /^\d+$/.test(name));
  const links = await Promise.all(ids.map((id) => readlink(`/proc/${id}/exe`).catch(() => undefined)));
  return links.filter((path) => path !== undefined);
}

/** Archives have one folder, or are what is in it. */
async function rootOf(unpacked: string): Promise<string> {
  const [only = "", ...others] = await readdir(unpacked);
  for (const root of others.length === 0 ? [unpacked, join(unpacked, only)] : [unpacked]) {
    if (await isFile(join(root, "bin", "engine"))) return root;
  }
  throw new CliError("the archive has no bin/engine: tell whoever published it");
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isFile();
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT" || systemCodeOf(error) === "ENOTDIR") return false;
    throw error;
  }
}

/** It finds itself through links, and the version beside itself, so that the folder may be moved. */
function launcherOf(version: string): string {
  return `#!/bin/sh
# engine update wrote this file: it starts the version that is installed.
self=$0
while [ -L "$self" ]; do
  link=$(readlink -- "$self")
  case $link in
    /*) self=$link ;;
    *) self=$(dirname -- "$self")/$link ;;
  esac
done
exec "$(dirname -- "$self")/../${ARCHIVE_VERSIONS}/${version}/bin/engine" "$@"
`;
}

function versionOf(launcher: string): string | undefined {
  return new RegExp(`/${ARCHIVE_VERSIONS}/([0-9A-Za-z.-]+)/bin/engine" `).exec(launcher)?.[1];
}

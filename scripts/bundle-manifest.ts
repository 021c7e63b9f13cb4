import { createHash } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * What the bundle was made of, in `dist/manifest.json`, by which `bin/engine.js` knows whether it is current: each file
 * with its size, its time of change, and a hash for files that were merely copied or touched.
 */
type Entry = [path: string, sizeBytes: number, changedMs: number, sha256: string];

/** Files other than sources on which the bundle depends: how it is built, and from which packages. */
const ALSO = ["package.json", "package-lock.json", "scripts/build.ts"];

/** Throws when a source has changed since the build started: the bundle may hold the text before or after it. */
export async function writeManifest(
  repository: string,
  folder: string,
  { sources, startedMs }: { sources: readonly string[]; startedMs: number },
): Promise<void> {
  const entries: Entry[] = [];
  for (const path of [...sources, ...ALSO].toSorted()) {
    const file = join(repository, path);
    const { size, mtimeMs } = await stat(file);
    if (mtimeMs >= startedMs) throw new Error(`${path} changed during the build: build again`);
    entries.push([
      path,
      size,
      mtimeMs,
      createHash("sha256")
        .update(await readFile(file))
        .digest("hex"),
    ]);
  }
  await writeFile(join(folder, "manifest.json"), `${JSON.stringify(entries)}\n`);
}

/** Whether the bundle in `folder` was made of the files that are there, untouched since. */
export async function isBundleCurrent(repository: string, folder: string): Promise<boolean> {
  try {
    const entries = JSON.parse(await readFile(join(folder, "manifest.json"), "utf8")) as Entry[];
    for (const [path, sizeBytes, changedMs] of entries) {
      const { size, mtimeMs } = await stat(join(repository, path));
      if (size !== sizeBytes || mtimeMs !== changedMs) return false;
    }
    return true;
  } catch {
    // There is no bundle, or one of its files is gone.
    return false;
  }
}

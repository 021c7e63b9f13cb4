import { createHash } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

/**
 * What the bundle was made of, in `dist/manifest.json`, and the pages for browsers, in `dist/web-manifest.json`, by which `bin/engine.js` knows whether they are current: each
 * file with its size, its time of change, and a hash for files that were merely copied or touched.
 */
type Entry = [path: string, sizeBytes: number, changedMs: number, sha256: string];

/** Files other than sources on which each depends: how it is built, and from which packages. */
const ALSO = {
  "manifest.json": ["package.json", "package-lock.json", "scripts/build.ts"],
  "web-manifest.json": [
    "package-lock.json",
    "scripts/web/build-web.ts",
    "scripts/web/chart-language.ts",
    "scripts/web/kql-service.ts",
    "src/web/serve/files.ts",
  ],
} as const;

/** The manifest of the program, and that of its pages for browsers: whoever changes the one need not build the other. */
export const MANIFEST = "manifest.json";
export const WEB_MANIFEST = "web-manifest.json";

/** Throws when a source has changed since the build started: the bundle may hold the text before or after it. */
export async function writeManifest(
  repository: string,
  file: string,
  { sources, startedMs }: { sources: readonly string[]; startedMs: number },
): Promise<void> {
  const entries: Entry[] = [];
  for (const path of [...sources, ...ALSO[basename(file) as keyof typeof ALSO]].toSorted()) {
    const source = join(repository, path);
    const { size, mtimeMs } = await stat(source);
    if (mtimeMs >= startedMs) throw new Error(`${path} changed during the build: build again`);
    entries.push([
      path,
      size,
      mtimeMs,
      createHash("sha256")
        .update(await readFile(source))
        .digest("hex"),
    ]);
  }
  await writeFile(file, `${JSON.stringify(entries)}\n`);
}

/** Whether what has the manifest was made of the files that are there, untouched since. */
export async function isCurrent(repository: string, manifest: string): Promise<boolean> {
  try {
    const entries = JSON.parse(await readFile(manifest, "utf8")) as Entry[];
    for (const [path, sizeBytes, changedMs] of entries) {
      const { size, mtimeMs } = await stat(join(repository, path));
      if (size !== sizeBytes || mtimeMs !== changedMs) return false;
    }
    return true;
  } catch {
    // There is none, or one of its files is gone.
    return false;
  }
}

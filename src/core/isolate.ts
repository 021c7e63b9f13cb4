import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isSea } from "node:sea";
import { fileURLToPath } from "node:url";

/**
 * The program starts parts of itself on worker threads and in child processes. In development each such part is a
 * source file that Node runs as it is. In the bundled release it is a small file beside the bundle, so that a thread or
 * process does not load the whole program. Where the bundle stands alone, it is started again and told which part to be
 * (`roles/main.ts` reads it: `workerData.isolate` on a thread, `--isolate NAME` in a child).
 */
declare const ENGINE_BUNDLED: boolean | undefined;

let builtFolder: string | undefined;

/**
 * Has sources start their parts from a bundle, which takes a third of the time: for tests, which start hundreds, and which
 * build the bundle before the first one.
 */
export function startPartsFrom(folder: string): void {
  builtFolder = folder;
}

/** The file to start for an isolate whose source is `source`. */
export function isolateFile(source: URL): string {
  const built = builtFolder && join(builtFolder, `${basename(source.pathname, ".ts")}.js`);
  if (built !== undefined && existsSync(built)) return built;
  const isBundled = typeof ENGINE_BUNDLED === "boolean" && ENGINE_BUNDLED;
  if (!isBundled) return fileURLToPath(source);
  const own = fileURLToPath(new URL(basename(source.pathname, ".ts") + ".js", import.meta.url));
  return existsSync(own) ? own : fileURLToPath(import.meta.url);
}

/** A program of the release beside this one, by the name of its file; undefined where this runs from its sources. */
export function releasedProgram(name: string): string | undefined {
  const isBundled = typeof ENGINE_BUNDLED === "boolean" && ENGINE_BUNDLED;
  const folder = isBundled ? dirname(fileURLToPath(import.meta.url)) : builtFolder;
  return folder === undefined ? undefined : join(folder, `${name}.js`);
}

/**
 * The Node to start scripts with. A single file runs nothing but this program, whatever words it is given: a plain Node
 * lies beside what it has unpacked (`src/single-file/`).
 */
export function nodeProgram(): string {
  return isSea() ? join(dirname(fileURLToPath(import.meta.url)), "..", "node") : process.execPath;
}

/**
 * What this process writes from now on is for its owner alone, whatever umask it was started with. For child processes,
 * where libraries write files whose modes are theirs to choose.
 */
export function keepFilesPrivate(): void {
  process.umask(0o077);
}

/**
 * The environment for a child process: this one's without the options of the program and the keys of its object store,
 * some of which are secrets. A child runs what clients send, and is told all that it needs by whoever starts it.
 */
export function isolateEnv(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(ENGINE_|AWS_|PG)/i.test(name)));
}

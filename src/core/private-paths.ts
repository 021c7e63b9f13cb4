import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/**
 * Where this process keeps its files, which no client is told: an error that names such a place was meant for the log.
 * Whoever serves says once what is private; a process that serves nobody (a command, a child process, whose errors come
 * back to the server) keeps nothing back.
 */
let places: RegExp | undefined;

/** What is below these is private from now on, by all the names that it has. */
export function keepPathsPrivate(paths: readonly string[]): void {
  const all = new Set(paths.flatMap((path) => [resolve(path), realPath(resolve(path))]));
  // Below the root is everything.
  all.delete("/");
  const names = [...all].map((path) => path.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  places = names.length === 0 ? undefined : new RegExp(`(?<![\\w.-])(?:${names.join("|")})(?!\\w)`);
}

/** What Node says of files (`ENOENT: no such file or directory, open '/…'`) and of programs (`spawn /… ENOENT`). */
const OF_THE_SYSTEM = /\bE[A-Z][A-Z0-9]+: [^\n]*, \w+ '\/|\bspawn \//;

/** Whether a text tells where this process keeps its files, or what it finds in the file system. */
export function namesPrivatePath(text: string): boolean {
  if (places === undefined || !text.includes("/")) return false;
  return places.test(text) || OF_THE_SYSTEM.test(text);
}

/** The path without links, as far as it is there. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Not made yet, so its folder alone can be a link.
    return path === dirname(path) ? path : join(realPath(dirname(path)), basename(path));
  }
}

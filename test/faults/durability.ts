import { dirname, resolve } from "node:path";
import type { SystemCall } from "./trace.ts";
import { pathOfDescriptor, stringOf } from "./trace.ts";

/**
 * A model of what a power cut would leave, fed with system calls: POSIX at its word, kinder file systems ignored.
 *
 * Bytes survive once the file is synced after they were written; a name survives once its folder is synced after the
 * call that made it, and the folder's own name likewise. A sync counts for what ended before it started. A sync that
 * fails loses what it was to cover for good: a later sync of the same pages succeeds without having written them.
 * Names that were there before the trace began are taken as durable.
 */
export class DurabilityModel {
  /** Paths with bytes written and not yet synced: the line of the last write, or `lost`. */
  readonly #dirtyBytes = new Map<string, number | "lost">();
  /** Names made in the trace and not yet synced. */
  readonly #dirtyNames = new Map<string, number | "lost">();
  readonly #known = new Set<string>();

  /** Feeds calls in the order of the trace. */
  apply(calls: readonly SystemCall[]): void {
    for (const call of calls) this.#applyOne(call);
  }

  /** Why the file would not survive a power cut now; empty when it would. */
  problemsOf(path: string): string[] {
    const problems: string[] = [];
    const bytes = this.#dirtyBytes.get(path);
    if (bytes !== undefined) problems.push(`the bytes of ${path} are ${bytes === "lost" ? "lost" : "not synced"}`);
    for (let p = path; p !== dirname(p); p = dirname(p)) {
      const name = this.#dirtyNames.get(p);
      if (name !== undefined)
        problems.push(`the name ${p} is ${name === "lost" ? "lost" : "not synced in its folder"}`);
    }
    return problems;
  }

  /** Files and folders that would not survive, below a folder. */
  unsafeBelow(folder: string): string[] {
    const paths = [...this.#dirtyBytes.keys(), ...this.#dirtyNames.keys()];
    return [...new Set(paths)].filter((path) => path.startsWith(`${folder}/`)).sort();
  }

  #applyOne(call: SystemCall): void {
    const { name } = call;
    if (name === "fsync" || name === "fdatasync") this.#sync(call);
    else if (call.error !== undefined) return;
    else if (name === "open" || name === "openat" || name === "creat") this.#open(call);
    else if (name === "mkdir" || name === "mkdirat") this.#make(pathsOf(call)[0], call.end);
    else if (name.startsWith("rename")) this.#rename(pathsOf(call), call.end);
    else if (name.startsWith("link")) this.#make(pathsOf(call)[1], call.end);
    else if (name.startsWith("unlink") || name === "rmdir") this.#remove(pathsOf(call)[0]);
    else if (/^p?write|^ftruncate/.test(name)) this.#write(pathOfDescriptor(call.args[0]), call.end);
  }

  /** Without O_EXCL a call that creates looks like one that opens: a path not seen before is taken as new. */
  #open(call: SystemCall): void {
    const path = pathsOf(call)[0];
    if (path === undefined) return;
    const creates = call.name === "creat" || call.args.some((arg) => /\bO_CREAT\b/.test(arg));
    if (creates && !this.#known.has(path)) this.#make(path, call.end);
    this.#known.add(path);
  }

  #make(path: string | undefined, line: number): void {
    if (path === undefined) return;
    this.#dirtyNames.set(path, line);
    this.#known.add(path);
  }

  #rename([from, to]: readonly string[], line: number): void {
    if (from === undefined || to === undefined) return;
    const bytes = this.#dirtyBytes.get(from);
    this.#remove(from);
    if (bytes === undefined) this.#dirtyBytes.delete(to);
    else this.#dirtyBytes.set(to, bytes);
    this.#make(to, line);
  }

  #remove(path: string | undefined): void {
    if (path === undefined) return;
    this.#dirtyNames.delete(path);
    this.#dirtyBytes.delete(path);
    this.#known.delete(path);
  }

  #write(path: string | undefined, line: number): void {
    if (path !== undefined && this.#dirtyBytes.get(path) !== "lost") this.#dirtyBytes.set(path, line);
  }

  #sync(call: SystemCall): void {
    const path = pathOfDescriptor(call.args[0]);
    if (path === undefined) return;
    settle(this.#dirtyBytes, [path], call);
    const names = [...this.#dirtyNames.keys()].filter((name) => dirname(name) === path);
    settle(this.#dirtyNames, names, call);
  }
}

/** Applies a sync: success makes what was done before it started durable, failure loses all it may have touched. */
function settle(dirty: Map<string, number | "lost">, paths: readonly string[], sync: SystemCall): void {
  for (const path of paths) {
    const line = dirty.get(path);
    if (line === undefined || line === "lost") continue;
    if (sync.error !== undefined) dirty.set(path, "lost");
    else if (line < sync.start) dirty.delete(path);
  }
}

/** The path arguments of a call, absolute. */
function pathsOf(call: SystemCall): string[] {
  const paths: string[] = [];
  let folder = "/";
  for (const arg of call.args) {
    const text = stringOf(arg);
    if (text === undefined) folder = pathOfDescriptor(arg) ?? folder;
    else paths.push(resolve(folder, text));
  }
  return paths;
}

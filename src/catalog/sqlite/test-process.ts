import { spawn, type ChildProcessWithoutNullStreams, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A user who may not do everything: permissions mean nothing to root. */
const NOBODY = 65_534;
const UNPRIVILEGED: SpawnOptions = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

export type Child = {
  process: ChildProcessWithoutNullStreams;
  /** Lines of standard output so far. */
  lines: string[];
  /** The next line, or undefined at the end. */
  next: () => Promise<string | undefined>;
  exited: Promise<void>;
};

/** Starts `test-child.ts` with a task. */
export function startChild(task: string, path: string, argument = "", options: { unprivileged?: boolean } = {}): Child {
  const file = fileURLToPath(new URL("test-child.ts", import.meta.url));
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", file, task, path, argument], {
    stdio: "pipe",
    ...(options.unprivileged === true && UNPRIVILEGED),
  }) as ChildProcessWithoutNullStreams;
  child.stderr.pipe(process.stderr);
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on("line", (line) => lines.push(line));
  const iterator = reader[Symbol.asyncIterator]();
  const exited = once(child, "close").then(() => undefined);
  const next = async () => {
    const { value, done } = await iterator.next();
    return done === true ? undefined : value;
  };
  return { process: child, lines, next, exited };
}

/** A folder for one test that the unprivileged user owns. */
export function makeFolder(): { folder: string; remove: () => void } {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "engine-catalog-")));
  if (process.getuid?.() === 0) chownSync(folder, NOBODY, NOBODY);
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

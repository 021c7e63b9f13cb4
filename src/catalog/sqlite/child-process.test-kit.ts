import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/**
 * Words before a command that must obey permissions. Root passes them by; without these two capabilities it does not,
 * and unlike another user it can still read this checkout and run its Node, wherever they are.
 */
const OBEYING: readonly string[] =
  process.getuid?.() === 0 ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] : [];

export type Child = {
  process: ChildProcessWithoutNullStreams;
  /** Lines of standard output so far. */
  lines: string[];
  /** The next line, or undefined at the end. */
  next: () => Promise<string | undefined>;
  exited: Promise<void>;
};

/** Starts `catalog-child.test-kit.ts` with a task. */
export function startChild(task: string, path: string, argument = "", options: { unprivileged?: boolean } = {}): Child {
  const file = fileURLToPath(new URL("catalog-child.test-kit.ts", import.meta.url));
  const [command, ...args] = [
    ...(options.unprivileged === true ? OBEYING : []),
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    file,
    task,
    path,
    argument,
  ];
  const child = spawn(command, args, { stdio: "pipe" });
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

/** A folder for one test. */
export function makeFolder(): { folder: string; remove: () => void } {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "engine-catalog-")));
  const remove = (): void => {
    // A test may have forbidden it.
    chmodSync(folder, 0o700);
    rmSync(folder, { recursive: true, force: true });
  };
  return { folder, remove };
}

import { execFile } from "node:child_process";
import { dirname, delimiter } from "node:path";
import { promisify } from "node:util";

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/**
 * Runs a program to its end, with this very Node in front of the path: npm chooses packages by the Node that runs it.
 * Resolves to what it printed. Rejects with its command line and what it wrote to standard error.
 */
export async function runTool(
  program: string,
  args: readonly string[],
  { cwd, env = {} }: { cwd?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<string> {
  const path = [dirname(process.execPath), process.env["PATH"]].join(delimiter);
  try {
    const { stdout } = await promisify(execFile)(program, args, {
      cwd,
      env: { ...process.env, PATH: path, ...env },
      maxBuffer: MAX_OUTPUT_BYTES,
    });
    return stdout;
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    throw new Error(`${[program, ...args].join(" ")} failed: ${stderr?.trim() || String(error)}`, { cause: error });
  }
}

/** `SOURCE_DATE_EPOCH`, or the time of the commit that the folder is a checkout of: seconds since 1970. @throws Error */
export async function commitTimeSecs(repository: string): Promise<number> {
  const given = process.env["SOURCE_DATE_EPOCH"];
  const text = given ?? (await runTool("git", ["log", "-1", "--format=%ct"], { cwd: repository }));
  const timeSecs = Number(text.trim() || "none");
  if (Number.isSafeInteger(timeSecs) && timeSecs > 0) return timeSecs;
  throw new Error(`SOURCE_DATE_EPOCH is ${text}; expected seconds since 1970`);
}

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The folder that this program is in. */
export const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

const git = async (...args: string[]) => (await promisify(execFile)("git", args, { cwd: REPOSITORY })).stdout.trim();

/** Of this folder's repository; a release has none. */
export async function revisionHere(): Promise<{ commit: string | null; isClean: boolean }> {
  try {
    return { commit: await git("rev-parse", "HEAD"), isClean: (await git("status", "--porcelain")) === "" };
  } catch {
    // Neither git nor a repository has to be there.
    return { commit: null, isClean: false };
  }
}

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

declare const ENGINE_BUNDLED: boolean | undefined;

/** Whether this is a part of a release, and no checkout. */
export const IS_RELEASE = typeof ENGINE_BUNDLED === "boolean" && ENGINE_BUNDLED;

/** The folder that this program is in. Of a release it says nothing. */
export const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

const git = async (...args: string[]) => (await promisify(execFile)("git", args, { cwd: REPOSITORY })).stdout.trim();

/** Of this folder's repository; a release has none. */
export async function revisionHere(): Promise<{ commit: string | null; isClean: boolean }> {
  // A release may lie within the repository of somebody else.
  if (IS_RELEASE) return { commit: null, isClean: false };
  try {
    return { commit: await git("rev-parse", "HEAD"), isClean: (await git("status", "--porcelain")) === "" };
  } catch {
    // Neither git nor a repository has to be there.
    return { commit: null, isClean: false };
  }
}

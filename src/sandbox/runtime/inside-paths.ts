import type { Stats } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { systemCodeOf } from "../../core/errors.ts";
import { RuntimeError } from "./runtime.ts";

/**
 * A launcher would follow links below the root of a machine, which a tenant may have left on a disk that is started
 * again. Nothing runs inside yet that could make one after this look. Rejects with `RuntimeError` `failed`.
 */
export async function mustNotLead(root: string, path: string): Promise<void> {
  let at = root;
  for (const part of path.split("/").filter(Boolean)) {
    at = join(at, part);
    const found = await lookAt(at);
    if (found === undefined) return;
    if (!found.isDirectory())
      throw new RuntimeError("failed", `${at.slice(root.length)} in the machine is not a folder`);
  }
}

/** What is there, a link being one; undefined where nothing is. */
export async function lookAt(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

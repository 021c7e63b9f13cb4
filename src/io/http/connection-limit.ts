import { readFileSync } from "node:fs";
import { systemCodeOf } from "../../core/errors.ts";

/**
 * How many connections a server may have open: half of the files that its process may open (`ulimit -n`). The other half
 * is for what the requests on them need: extents, the catalog, query processes, peers. Without such a bound clients that
 * do nothing but connect would make requests fail that were accepted. Undefined where the system does not say.
 */
export function connectionLimit(): number | undefined {
  const files = openFileLimit();
  return files === undefined ? undefined : Math.max(1, Math.floor(files / 2));
}

function openFileLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch (error) {
    // Not Linux.
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

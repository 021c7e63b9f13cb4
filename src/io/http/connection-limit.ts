import { readFileSync } from "node:fs";
import { systemCodeOf } from "../../core/errors.ts";

/**
 * The share of the files that a process may open (`ulimit -n`) which connections of a server may take: half of them
 * together, with two servers of gRPC. Their clients make many calls on one connection.
 */
const SHARES = { http: 6 / 16, grpc: 1 / 16 } as const;

/**
 * How many connections a server may have open. The other half of the files is for what the requests on them need:
 * extents, the catalog, query processes, peers. Without such a bound clients that do nothing but connect would make
 * requests fail that were accepted. Undefined where the system does not say.
 */
export function connectionLimit(server: keyof typeof SHARES): number | undefined {
  const files = openFileLimit();
  return files === undefined ? undefined : Math.max(1, Math.floor(files * SHARES[server]));
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

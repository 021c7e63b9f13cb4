import type { LaunchRequest } from "./launcher.ts";
import { AGENT_GID, AGENT_UID } from "./runtime.ts";

/** Where the first process of a machine is in it. */
export const FIRST_PROCESS = "/dev/first-process";
/** Of memory, which they count as. */
export const SHARED_MEMORY_BYTES = 1024 * 1024 * 1024;
export const RUN_BYTES = 64 * 1024 * 1024;

/**
 * What every configuration of a machine by the OCI runtime specification, 1.0, has in common: its root, and a first
 * process of the agent's user that has no capability and gets none.
 */
export function ociMachine({ record }: Pick<LaunchRequest, "record">) {
  return {
    ociVersion: "1.0.2",
    root: { path: "/tmp/root" },
    hostname: record.hostname,
    process: {
      terminal: false,
      // Also because runc gives the console away to whom it starts.
      user: { uid: AGENT_UID, gid: AGENT_GID },
      args: [FIRST_PROCESS],
      env: [],
      cwd: "/",
      capabilities: { bounding: [], effective: [], permitted: [] },
      noNewPrivileges: true,
    },
  };
}

import type { Feature } from "../../feature/feature.ts";

/** Memories in the files of coding agents, and on another server. */
export const FILE_SYNC: Feature = {
  name: "filesync",
  title: "File sync",
  options: async () => (await import("./options.ts")).FILE_SYNC_OPTIONS,
  commands: { sync: () => import("./commands/sync.ts") },
};

import type { FeatureParts } from "../feature/feature.ts";

/** Backups of the catalog with its objects, and how they come back. */
export const BACKUPS: FeatureParts = {
  name: "backup",
  title: "Backups",
  options: async () => (await import("./options.ts")).BACKUP_OPTIONS,
  metrics: async () => (await import("./metrics.ts")).BACKUP_METRICS,
  jobKinds: async () => [(await import("./job.ts")).BACKUP],
  jobHandlers: async (deps) => [(await import("./job.ts")).backupHandler(deps)],
  duties: { worker: async (deps) => [(await import("./job.ts")).backupWatch(deps)] },
  commands: {
    backup: () => import("./commands/backup.ts"),
  },
};

import type { FeatureParts } from "../../../feature/feature.ts";

/** Rows out of files that are dropped into the object store. `roles/filedrop.ts` runs it with the role `ingest`. */
export const FILE_DROP: FeatureParts = {
  name: "filedrop",
  title: "File-drop",
  options: async () => (await import("./options.ts")).FILEDROP_OPTIONS,
  metrics: async () => (await import("./metrics.ts")).FILEDROP_METRICS,
  migrations: async () => (await import("./tables.ts")).FILEDROP_MIGRATIONS,
  systemTables: async () => [(await import("./system-table.ts")).FILEDROP],
};

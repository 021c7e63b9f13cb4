import type { FeatureParts } from "../feature/feature.ts";

/** Which servers work on the catalog. `roles/servers.ts` has each announce itself. */
export const SERVERS: FeatureParts = {
  name: "servers",
  title: "Servers",
  migrations: async () => (await import("./tables.ts")).SERVERS_MIGRATIONS,
  systemTables: async () => [(await import("./system-table.ts")).SERVERS_TABLE],
};

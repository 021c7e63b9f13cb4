import type { Feature } from "../feature/feature.ts";
import type { CapabilitiesDeps } from "./routes/capabilities.ts";

/** Which servers work on the catalog, and what they can do together. `roles/servers.ts` has each announce itself. */
export const SERVERS: Feature<{ capabilities: CapabilitiesDeps }> = {
  name: "servers",
  title: "Servers",
  migrations: async () => (await import("./tables.ts")).SERVERS_MIGRATIONS,
  systemTables: async () => [(await import("./system-table.ts")).SERVERS_TABLE],
  routes: async () => {
    const { capabilitiesRoute } = await import("./routes/capabilities.ts");
    return [{ name: "capabilities", answeredBy: "capabilities", routes: [capabilitiesRoute] }];
  },
};

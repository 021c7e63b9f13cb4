import type { Feature } from "../../feature/feature.ts";

/** Dashboards: panels of queries that people share, with their earlier versions. */
export const DASHBOARDS: Feature = {
  name: "dashboards",
  title: "Dashboards",
  migrations: async () => (await import("./tables.ts")).DASHBOARD_MIGRATIONS,
  commands: { dashboards: () => import("./commands/dashboards.ts") },
  routes: async () => {
    const { DASHBOARD_ROUTES } = await import("./routes/dashboards.ts");
    return [{ name: "dashboards", answeredBy: "feature", routes: DASHBOARD_ROUTES }];
  },
};

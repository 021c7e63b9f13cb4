import type { Feature } from "../feature/feature.ts";

/** What people keep at their place of work: saved queries, a history of queries, settings. */
export const WORKBENCH: Feature = {
  name: "workbench",
  title: "Workbench",
  migrations: async () => (await import("./tables.ts")).WORKBENCH_MIGRATIONS,
  routes: async () => {
    const { WORKBENCH_ROUTES } = await import("./routes/routes.ts");
    return [{ name: "workbench", answeredBy: "feature", routes: WORKBENCH_ROUTES }];
  },
};

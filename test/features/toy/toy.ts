import type { Feature } from "../../../src/feature/feature.ts";
import { TOY_OPTIONS } from "./options.ts";

/**
 * A feature as small as one can be that contributes everything: toys are made over HTTP, painted by a job, counted, and
 * listed by a command.
 */
export const TOY: Feature = {
  name: "toy",
  title: "Toys",
  options: async () => TOY_OPTIONS,
  metrics: async () => (await import("./metrics.ts")).TOY_METRICS,
  migrations: async () => (await import("./tables.ts")).TOY_MIGRATIONS,
  routes: async () => {
    const { TOY_ROUTES } = await import("./routes.ts");
    return [{ name: "toys", answeredBy: "feature", routes: TOY_ROUTES }];
  },
  jobKinds: async () => [(await import("./paint.ts")).PAINT],
  jobHandlers: async (deps) => [(await import("./paint.ts")).createPaint(deps)],
  systemTables: async () => [(await import("./system-table.ts")).TOYS],
  commands: { toys: () => import("./command.ts") },
  duties: { worker: async (deps) => [(await import("./tidy.ts")).tidyDuty(deps)] },
};

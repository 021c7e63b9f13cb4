import type { Feature } from "../../feature/feature.ts";
import type { DreamDeskRoutesDeps } from "./remote/routes.ts";
import type { DreamingDeps } from "./routes.ts";

/** Pipelines that turn what was observed into memories, and the ledger of their runs. */
export const DREAMING: Feature<{ dreaming: DreamingDeps & DreamDeskRoutesDeps }> = {
  name: "dreaming",
  title: "Dreaming",
  metrics: async () => (await import("./metrics.ts")).DREAMING_METRICS,
  migrations: async () => (await import("./tables.ts")).DREAMING_MIGRATIONS,
  jobKinds: async () => [(await import("./dream-job.ts")).DREAM_JOB],
  duties: { worker: async (deps) => (await import("./duties.ts")).dreamDuties(deps) },
  routes: async () => {
    const [{ DREAMING_ROUTES }, { DREAM_DESK_ROUTES }] = await Promise.all([
      import("./routes.ts"),
      import("./remote/routes.ts"),
    ]);
    return [
      { name: "dreaming", answeredBy: "dreaming", routes: DREAMING_ROUTES },
      { name: "dreams on workers", answeredBy: "dreaming", routes: DREAM_DESK_ROUTES },
    ];
  },
};

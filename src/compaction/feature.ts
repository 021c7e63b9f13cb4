import { valuesOf } from "../config/option.ts";
import type { Feature, RouteDeps } from "../feature/feature.ts";
import type { CleanupDeps } from "./routes/cleanup.ts";
import type { DeletionDeps } from "./routes/deletion.ts";

const ORPHAN_SWEEP_MS = 86_400_000;
const ORPHAN_LEASE_MS = 300_000;

/** What rewrites extents, deletes rows and cleans up. */
export const COMPACTION: Feature<RouteDeps & { deletion: DeletionDeps; ingest: CleanupDeps }> = {
  name: "compaction",
  title: "Compaction",
  options: async () => (await import("./options.ts")).COMPACTION_OPTIONS,
  metrics: async () => {
    const [{ metricSets }, { COMPACTION_METRICS, PUBLICATION_METRICS }] = await Promise.all([
      import("../core/metric-set.ts"),
      import("./metrics.ts"),
    ]);
    return metricSets(COMPACTION_METRICS, PUBLICATION_METRICS);
  },
  migrations: async () => (await import("./tables.ts")).COMPACTION_MIGRATIONS,
  commands: {
    "delete-rows": () => import("./commands/delete-rows.ts"),
    publish: () => import("./commands/publish.ts"),
  },
  routes: async () => {
    const [{ DELETION_ROUTES }, { cleanupTableRoute }, { publishRoute }] = await Promise.all([
      import("./routes/deletion.ts"),
      import("./routes/cleanup.ts"),
      import("./routes/publish.ts"),
    ]);
    return [
      { name: "deletion", answeredBy: "deletion", routes: DELETION_ROUTES },
      { name: "cleanup", answeredBy: "ingest", routes: [cleanupTableRoute] },
      { name: "publish", answeredBy: "feature", routes: [publishRoute] },
    ];
  },
  jobKinds: async () => {
    const [{ VERIFY_EXTENTS }, { DELETE_ROWS }, { REWRITE_EXTENTS }] = await Promise.all([
      import("./verify-extents.ts"),
      import("./delete-rows.ts"),
      import("./rewrite-extents.ts"),
    ]);
    return [VERIFY_EXTENTS, DELETE_ROWS, REWRITE_EXTENTS];
  },
  jobHandlers: async (deps) => {
    const [{ createRewriteExtents }, { PublishRequests }] = await Promise.all([
      import("./rewrite-extents.ts"),
      import("./publish-requests.ts"),
    ]);
    return [createRewriteExtents({ ...deps, requests: new PublishRequests(deps) })];
  },
  duties: {
    compaction: async ({ config, ...ports }) => {
      const [
        { COMPACTION_OPTIONS },
        { createRetention },
        { createDeletion },
        { DeletionReports },
        { createOrphanSweep },
        { mergeDuties },
      ] = await Promise.all([
        import("./options.ts"),
        import("./retention.ts"),
        import("./deletion.ts"),
        import("./deletion-reports.ts"),
        import("./orphans.ts"),
        import("./merge-duty.ts"),
      ]);
      const reports = new DeletionReports(ports.records);
      const { physicalGcGraceSecs, physicalGcPollSecs, retentionPollSecs } = valuesOf(COMPACTION_OPTIONS, config);
      const graceMs = physicalGcGraceSecs * 1_000;
      const orphans = createOrphanSweep(ports, { keyPrefix: config.pathPrefix });
      return [
        { name: "retention", pollMs: retentionPollSecs * 1_000, duty: createRetention(ports) },
        {
          name: "deletion",
          pollMs: physicalGcPollSecs * 1_000,
          duty: createDeletion({ ...ports, reports }, { graceMs }),
        },
        { name: "orphan sweep", pollMs: ORPHAN_SWEEP_MS, ttlMs: ORPHAN_LEASE_MS, duty: orphans },
        ...mergeDuties({ config, ...ports }),
      ];
    },
  },
};

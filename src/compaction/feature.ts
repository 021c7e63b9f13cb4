import { valuesOf } from "../config/option.ts";
import type { Feature } from "../feature/feature.ts";
import type { CleanupDeps } from "./routes/cleanup.ts";
import type { DeletionDeps } from "./routes/deletion.ts";

const ORPHAN_SWEEP_MS = 86_400_000;
const ORPHAN_LEASE_MS = 300_000;

/** What rewrites extents, deletes rows and cleans up. */
export const COMPACTION: Feature<{ deletion: DeletionDeps; ingest: CleanupDeps }> = {
  name: "compaction",
  title: "Compaction",
  options: async () => (await import("./options.ts")).COMPACTION_OPTIONS,
  metrics: async () => (await import("./metrics.ts")).COMPACTION_METRICS,
  commands: {
    "delete-rows": () => import("./commands/delete-rows.ts"),
  },
  routes: async () => {
    const [{ DELETION_ROUTES }, { cleanupTableRoute }] = await Promise.all([
      import("./routes/deletion.ts"),
      import("./routes/cleanup.ts"),
    ]);
    return [
      { name: "deletion", answeredBy: "deletion", routes: DELETION_ROUTES },
      { name: "cleanup", answeredBy: "ingest", routes: [cleanupTableRoute] },
    ];
  },
  jobKinds: async () => {
    const [{ VERIFY_EXTENTS }, { DELETE_ROWS }] = await Promise.all([
      import("./verify-extents.ts"),
      import("./delete-rows.ts"),
    ]);
    return [VERIFY_EXTENTS, DELETE_ROWS];
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

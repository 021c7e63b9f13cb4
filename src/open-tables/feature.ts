import type { Feature } from "../feature/feature.ts";

const FOLLOW_MS = 5_000;
const SWEEP_MS = 86_400_000;
const SWEEP_LEASE_MS = 300_000;

/** Tables that other programs read in place: Iceberg's catalog protocol over our own catalog, read-only. */
export const OPEN_TABLES: Feature = {
  name: "open_tables",
  title: "Open tables",
  options: async () => (await import("./options.ts")).OPEN_TABLE_OPTIONS,
  metrics: async () => (await import("./metrics.ts")).OPEN_TABLES_METRICS,
  migrations: async () => (await import("./tables.ts")).OPEN_TABLES_MIGRATIONS,
  commands: { open: () => import("./commands/open.ts") },
  routes: async () => [
    { name: "iceberg", answeredBy: "feature", routes: (await import("./routes/routes.ts")).ICEBERG_ROUTES },
  ],
  duties: {
    compaction: async (deps) => {
      const [{ createFollower }, { createMetadataSweep }] = await Promise.all([
        import("./follower.ts"),
        import("./sweep.ts"),
      ]);
      return [
        { name: "open tables", pollMs: FOLLOW_MS, duty: createFollower(deps) },
        { name: "open tables sweep", pollMs: SWEEP_MS, ttlMs: SWEEP_LEASE_MS, duty: createMetadataSweep(deps) },
      ];
    },
  },
};

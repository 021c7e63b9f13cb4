import type { Feature } from "../feature/feature.ts";
import type { IngestDeps } from "./routes/deps.ts";

const LEDGER_SWEEP_MS = 60_000;

/** Rows in. */
export const INGEST: Feature<{ ingest: IngestDeps }> = {
  name: "ingest",
  title: "Ingest",
  options: async () => {
    const [{ INGEST_OPTIONS }, { OTLP_OPTIONS }] = await Promise.all([
      import("./options.ts"),
      import("./inputs/otlp/options.ts"),
    ]);
    return { ...INGEST_OPTIONS, ...OTLP_OPTIONS };
  },
  metrics: async () => (await import("./metrics.ts")).INGEST_METRICS,
  capabilities: async () => (await import("./capabilities.ts")).INGEST_CAPABILITIES,
  commands: {
    ingest: () => import("./commands/ingest.ts"),
  },
  routes: async () => {
    const { INGEST_ROUTES } = await import("./routes/ingest-routes.ts");
    return [{ name: "ingest", answeredBy: "ingest", routes: INGEST_ROUTES }];
  },
  duties: {
    compaction: async ({ config, ...ports }) => {
      const { sweepKeys } = await import("./staged/sweep.ts");
      const duty = () => sweepKeys({ ...ports, keyPrefix: config.pathPrefix });
      return [{ name: "ledger sweep", pollMs: LEDGER_SWEEP_MS, duty }];
    },
  },
};

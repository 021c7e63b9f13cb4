import type { Feature } from "../../feature/feature.ts";

/** Pipelines that turn what was observed into memories, and the ledger of their runs. */
export const DREAMING: Feature = {
  name: "dreaming",
  title: "Dreaming",
  migrations: async () => (await import("./tables.ts")).DREAMING_MIGRATIONS,
};

import { valuesOf } from "../config/option.ts";
import type { Capability } from "../feature/capability.ts";
import { INGEST_OPTIONS } from "./options.ts";

export const INGEST_CAPABILITIES: readonly Capability[] = [
  {
    name: "visible_at_once",
    title: "Rows visible when acknowledged",
    whyOff: async ({ config }) =>
      valuesOf(INGEST_OPTIONS, config).ingestMode === "sync"
        ? undefined
        : "ENGINE_INGEST_MODE is staged: rows are acknowledged once they are durable, and visible once the committer has " +
          "committed them. `sync` acknowledges them once they are visible.",
  },
];

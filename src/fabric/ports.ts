import type { RecordStore } from "../db/records.ts";
import type { IdSource } from "../core/ids.ts";
import type { Random } from "../core/random.ts";
import type { JobMetrics } from "./job-metrics.ts";
import type { JobKinds } from "./kinds.ts";

/** What the verbs of the fabric work with. */
export type FabricPorts = {
  records: RecordStore;
  kinds: JobKinds;
  newId: IdSource;
  random: Random;
  /** How long a holder may be silent, where the kind does not say. */
  leaseMs: number;
  metrics?: JobMetrics | undefined;
  /** Says that jobs wait in lanes: their keys. */
  announce: (lanes: readonly string[]) => void;
};

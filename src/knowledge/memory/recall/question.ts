import type { RealmRights } from "../realms.ts";

/** What recall is asked. Times are µs since 1970. */
export type Question = {
  query: string;
  /** Empty: all that the caller may see. */
  realms: readonly string[];
  memoryType: string | undefined;
  /** A memory must have all of them. */
  tags: readonly string[];
  importanceMin: number | undefined;
  /** What held then; now, or when `knownAtUs` says, unless given. */
  asOfUs: number | undefined;
  /** By what was recorded until then. */
  knownAtUs: number | undefined;
  includeInvalidated: boolean;
  /** By the settings of the database unless given. */
  limit: number | undefined;
  expandHops: number | undefined;
};

/** Who asks; with what the question means, where a model says so. */
export type Asking = { question: Question; rights: RealmRights; vector?: Float32Array | undefined };

/** And when: by the clock of the database. */
export type Asked = Asking & { nowUs: number };

/** How results are rated beyond words and links: `ENGINE_MEMORY_PPR` and `ENGINE_MEMORY_CLASS_DECAY`. */
export type RatingOptions = { ppr: boolean; classDecay: boolean };

/** How many memories, and how far over edges. */
export type Extent = { limit: number; expandHops: number };

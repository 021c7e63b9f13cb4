import * as kinds from "../../../config/kinds.ts";
import { option } from "../../../config/option.ts";

export const RECALL_OPTIONS = {
  memoryPpr: option({
    env: "ENGINE_MEMORY_PPR",
    toml: "memory.ppr",
    kind: kinds.bool,
    default: false,
    side: "S",
    doc:
      "`1` has recall rescore what it finds by personalized PageRank over the edges of memory, in place of spreading " +
      "scores to neighbours.",
  }),
  memoryClassDecay: option({
    env: "ENGINE_MEMORY_CLASS_DECAY",
    toml: "memory.class_decay",
    kind: kinds.bool,
    default: false,
    side: "S",
    doc:
      "`1` has memories count less with age by a half-life of their type: preferences two years, procedures one, facts " +
      "180 days, learnings 120, decisions 90. Without it age takes a fifth at most, whatever the type.",
  }),
} as const;

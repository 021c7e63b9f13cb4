import * as kinds from "../../config/kinds.ts";
import { option } from "../../config/option.ts";

const pollSecs = kinds.integer({ min: 1, max: 86_400 });

export const PIPELINE_OPTIONS = {
  memoryConsolidation: option({
    env: "ENGINE_MEMORY_CONSOLIDATION",
    toml: "memory.consolidation",
    kind: kinds.bool,
    default: true,
    side: "S",
    doc: "`0` links no memories by itself: neither those that say the same, nor those of one conversation.",
  }),
  memoryConsolidationPollSecs: option({
    env: "ENGINE_MEMORY_CONSOLIDATION_POLL_SECS",
    toml: "memory.consolidation_poll_secs",
    kind: pollSecs,
    default: 60,
    side: "S",
    doc: "Seconds between two looks for memories to link.",
  }),
  ciCorrelate: option({
    env: "ENGINE_CI_CORRELATE",
    toml: "memory.ci_correlate",
    kind: kinds.bool,
    default: true,
    side: "S",
    doc: "`0` makes no memories of failures that repeat in the table `firehose`.",
  }),
  ciCorrelatePollSecs: option({
    env: "ENGINE_CI_CORRELATE_POLL_SECS",
    toml: "memory.ci_correlate_poll_secs",
    kind: pollSecs,
    default: 60,
    side: "S",
    doc: "Seconds between two looks for failures in the table `firehose`.",
  }),
  // Other programs of the kind have candidates that these promote, and their settings are brought along.
  filePromote: option({
    env: "ENGINE_FILE_PROMOTE",
    toml: "memory.file_promote",
    kind: kinds.bool,
    default: true,
    side: "S",
    doc:
      "Accepted, and without effect: file sync makes each file of an agent a memory at once, so that there are no " +
      "candidates to promote.",
  }),
  filePromotePollSecs: option({
    env: "ENGINE_FILE_PROMOTE_POLL_SECS",
    toml: "memory.file_promote_poll_secs",
    kind: pollSecs,
    default: 60,
    side: "S",
    doc: "Accepted, and without effect: as there are no candidates to promote, nobody looks for them.",
  }),
} as const;

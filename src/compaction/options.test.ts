import { bytes, integer } from "../config/load-samples.test-kit.ts";
import { checkDefaults, checkSamples } from "../config/option-samples.test-kit.ts";
import { COMPACTION_OPTIONS } from "./options.ts";

checkSamples(COMPACTION_OPTIONS, {
  compactionMinExtents: integer(2, 12, 2, 1_000),
  compactionPollSecs: integer(1, 30, 0, 86_400),
  compactionIdleSleepMs: integer(0, 500, 0, 3_600_000),
  compactionIoBytesPerSec: bytes(0, ["64MiB", 2 ** 26], 0, 2 ** 40),
  icebergMaxLagSecs: integer(0, 300, 0, 86_400),
  retentionPollSecs: integer(1, 60, 1, 86_400),
  physicalGcPollSecs: integer(1, 60, 1, 86_400),
  physicalGcGraceSecs: integer(0, 3_600, 0, 315_360_000),
});

checkDefaults(COMPACTION_OPTIONS, {
  compactionMinExtents: 24,
  compactionPollSecs: 10,
  compactionIdleSleepMs: 250,
  compactionIoBytesPerSec: undefined,
  icebergMaxLagSecs: 0,
  retentionPollSecs: 300,
  physicalGcPollSecs: 300,
  physicalGcGraceSecs: 86_400,
});

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runChaos, type Mixed } from "../test/cluster/chaos.ts";
import { checkOut } from "../test/upgrade/check-out.ts";

/**
 * The long form of `test/cluster/chaos.pg.s3.long.test.ts`:
 *
 *     node scripts/chaos.ts [events] [seed] [--mode sync|staged|both] [--store-errors 0.33] [--store-latency-ms 300]
 *                           [--earlier COMMIT]
 *
 * With `--earlier` the cluster starts as that commit, and is upgraded amid it all: what was killed or stopped comes back
 * as this checkout, or as either of the two where that commit starts on a catalog that a newer version has changed.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    mode: { type: "string", default: "both" },
    "store-errors": { type: "string", default: "0" },
    "store-latency-ms": { type: "string", default: "0" },
    earlier: { type: "string" },
  },
});
const [events = 300, seed = Math.floor(Math.random() * 2 ** 31)] = positionals.map(Number);
const faults = { errorShare: Number(values["store-errors"]), latencyMs: Number(values["store-latency-ms"]) };
const modes = (["sync", "staged"] as const).filter((mode) => values.mode === mode || values.mode === "both");
const numbers = [events, seed, faults.errorShare, faults.latencyMs];
if (modes.length === 0 || !numbers.every((number) => number >= 0)) throw new Error("see the head of this script");
// Without faults there is nothing between the servers and their store.
const store = faults.errorShare + faults.latencyMs > 0 ? { store: faults } : {};
const checkout = mkdtempSync(join(tmpdir(), "engine-chaos-earlier-"));
try {
  const mixed = values.earlier === undefined ? {} : { mixed: earlierOf(values.earlier) };
  for (const mode of modes) {
    console.log(`mode ${mode}, seed ${seed}`);
    const report = await runChaos({ events, seed, mode, ...store, ...mixed, say: console.log });
    console.log(JSON.stringify(report, undefined, 2));
    if (report.problems.length > 0) process.exitCode = 1;
  }
} finally {
  rmSync(checkout, { recursive: true, force: true });
}

function earlierOf(commit: string): Mixed {
  const entry = checkOut(commit, checkout);
  // Commits without it refuse every newer catalog.
  return { entry, comesBack: existsSync(join(checkout, "src/db/schema-upkeep.ts")) };
}

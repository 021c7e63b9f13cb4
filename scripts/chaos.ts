import { parseArgs } from "node:util";
import { runChaos } from "../test/cluster/chaos.ts";

/**
 * The long form of `test/cluster/chaos.pg.s3.long.test.ts`:
 *
 *     node scripts/chaos.ts [events] [seed] [--mode sync|staged|both] [--store-errors 0.33] [--store-latency-ms 300]
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    mode: { type: "string", default: "both" },
    "store-errors": { type: "string", default: "0" },
    "store-latency-ms": { type: "string", default: "0" },
  },
});
const [events = 300, seed = Math.floor(Math.random() * 2 ** 31)] = positionals.map(Number);
const faults = { errorShare: Number(values["store-errors"]), latencyMs: Number(values["store-latency-ms"]) };
const modes = (["sync", "staged"] as const).filter((mode) => values.mode === mode || values.mode === "both");
const numbers = [events, seed, faults.errorShare, faults.latencyMs];
if (modes.length === 0 || !numbers.every((number) => number >= 0)) throw new Error("see the head of this script");
// Without faults there is nothing between the servers and their store.
const store = faults.errorShare + faults.latencyMs > 0 ? { store: faults } : {};
for (const mode of modes) {
  console.log(`mode ${mode}, seed ${seed}`);
  const report = await runChaos({ events, seed, mode, ...store, say: console.log });
  console.log(JSON.stringify(report, undefined, 2));
  if (report.problems.length > 0) process.exitCode = 1;
}

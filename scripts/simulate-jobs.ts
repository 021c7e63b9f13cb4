/**
 * The long form of `test/simulation/jobs`: as many seeds as one likes, on all cores.
 *
 *     node scripts/simulate-jobs.ts [count] [seed]    that many seeds from that one on (100,000, from a random one)
 *
 * Stops at the first seed that fails, with what happened in it and exit code 1. A seed is run again by
 * `node scripts/simulate-jobs.ts 1 <seed>`, which does the same, step by step, as long as the program is the same.
 */
import { simulateJobs } from "../test/simulation/jobs/simulate.ts";
import { runSeeds } from "./run-seeds.ts";

const name = "scripts/simulate-jobs.ts";
await runSeeds({ script: new URL(import.meta.url), name, simulate: simulateJobs, count: 100_000 });

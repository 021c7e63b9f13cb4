/**
 * The long form of `test/query/differential/differential.test.ts`: random queries over fresh, sealed and mixed extents
 * against plain DuckDB.
 *
 *     node scripts/query-differential.ts [queries] [seed] [first]
 *
 * Stops after five queries with a difference, with exit code 1. A query is made from the seed and its own number, so
 * `node scripts/query-differential.ts 1 <seed> <number>` runs one of them again.
 */
import { systemClock } from "../src/core/clock.ts";
import { systemRandom } from "../src/core/random.ts";
import { runDifferential } from "../test/query/differential/differential.test-kit.ts";

const PROGRESS_MS = 10_000;

const [queries = 10_000, seed = Math.floor(systemRandom.next() * 2 ** 31), first = 0] = process.argv
  .slice(2)
  .map(count);
console.log(`${queries} queries, seed ${seed}, from number ${first}`);

let reportedMs = systemClock.monotonicMs();
let slowest = { seconds: 0, index: 0 };
const report = await runDifferential({
  seed,
  queries,
  first,
  onQuery: ({ index, sql, seconds }) => {
    if (queries === 1) console.log(sql);
    if (seconds > slowest.seconds) slowest = { seconds, index };
    const nowMs = systemClock.monotonicMs();
    if (nowMs - reportedMs < PROGRESS_MS) return;
    reportedMs = nowMs;
    console.log(`${index + 1 - first} queries`);
  },
});
for (const difference of report.differences) console.error(`\n${difference}`);
for (const refused of report.refused) console.log(`\nrefused by both: ${refused}`);
console.log(
  `${report.queries} queries: ${report.differences.length} with a difference, ${report.answered} with rows, ` +
    `${report.refused.length} refused by both; the slowest took ${slowest.seconds.toFixed(2)} s (number ${slowest.index})`,
);
process.exitCode = report.differences.length === 0 ? 0 : 1;

function count(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new Error(`${text} is no count; usage: query-differential.ts [queries] [seed] [first]`);
  }
  return value;
}

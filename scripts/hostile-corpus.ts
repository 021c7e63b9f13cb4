/**
 * The long form of `test/access/hostile-corpus.long.test.ts`: hostile statements against a server with two databases, as a
 * caller of one.
 *
 *     node scripts/hostile-corpus.ts [statements] [seed]
 *
 * Prints what is found, with exit code 1. The same seed makes the same statements.
 */
import { systemClock } from "../src/core/clock.ts";
import { systemRandom } from "../src/core/random.ts";
import { makeCorpus } from "../test/query/hostile/corpus/corpus.test-kit.ts";
import { runCorpus, startHostileWorld } from "../test/access/hostile-corpus.test-kit.ts";

const PROGRESS_MS = 10_000;

const [count = 20_000, seed = Math.floor(systemRandom.next() * 2 ** 31)] = process.argv.slice(2).map(wholeNumber);
console.log(`${count} statements, seed ${seed}`);

const world = await startHostileWorld();
const statements = makeCorpus({ seed, count, target: world.target });
const startedMs = systemClock.monotonicMs();
let reportedMs = startedMs;
const report = await runCorpus(world, {
  statements,
  send: world.query,
  onBatch: ({ sent, findings }) => {
    const nowMs = systemClock.monotonicMs();
    if (nowMs - reportedMs < PROGRESS_MS) return;
    reportedMs = nowMs;
    console.log(`${sent} statements, ${findings.length} findings`);
  },
});
const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
await world.stop();
for (const finding of report.findings) console.error(`\n${finding}`);
const statuses = Object.entries(report.statuses).map(([status, times]) => `${status} ${times}`);
console.log(`${report.sent} statements in ${seconds.toFixed(1)} s: ${statuses.join(", ")}`);
console.log(`${report.findings.length} findings, seed ${seed}`);
process.exitCode = report.findings.length === 0 ? 0 : 1;

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new Error(`${text} is no count; usage: hostile-corpus.ts [statements] [seed]`);
  }
  return value;
}

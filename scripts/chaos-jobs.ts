/**
 * The long form of `test/cluster/jobs-chaos.long.test.ts`: 20 daemons, 20,000 short jobs and 200 long ones.
 *
 *     node scripts/chaos-jobs.ts [events] [seed]    so many events (60), by the plan of that seed (a random one)
 *
 * Prints each event, and exits with 1 when something does not hold; the logs are then kept. Takes PostgreSQL where it is
 * installed, and a catalog in a file otherwise.
 */
import { findPostgresPrograms } from "../src/db/postgres/server-programs.ts";
import { systemRandom } from "../src/core/random.ts";
import { describeReport, runJobChaos } from "../test/cluster/jobs-chaos.ts";

const [events = 60, seed = Math.floor(systemRandom.next() * 2 ** 31)] = process.argv.slice(2).map(Number);
if (!Number.isSafeInteger(events) || !Number.isSafeInteger(seed))
  throw new Error("usage: chaos-jobs.ts [events] [seed]");
const postgres = findPostgresPrograms()?.folder;
console.log(`${events} events, seed ${seed}, on ${postgres === undefined ? "a catalog in a file" : "PostgreSQL"}`);
const report = await runJobChaos({
  daemons: 20,
  shortJobs: 20_000,
  longJobs: 200,
  events,
  enqueueMs: events * 1_500,
  seed,
  postgres,
  say: (line) => console.log(line),
});
console.log(describeReport(report));
for (const problem of report.problems) console.error(problem);
if (report.problems.length > 0) console.error(`the logs are in ${report.folder}`);
process.exitCode = report.problems.length > 0 ? 1 : 0;

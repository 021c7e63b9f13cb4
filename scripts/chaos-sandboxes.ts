/**
 * The long form of `test/sandboxes/chaos.long.test.ts`: 300 kills, 2,000 sandboxes, 1,000 disconnects. As root, on Linux.
 *
 *     node scripts/chaos-sandboxes.ts [share] [seed]   that share of it, 1 unless given; by the plan of that seed (a random one)
 *
 * Prints each event, and exits with 1 when something does not hold; the logs are then kept. Takes PostgreSQL where it is
 * installed, and a catalog in a file otherwise.
 */
import { findPostgresPrograms } from "../src/db/postgres/server-programs.ts";
import { systemRandom } from "../src/core/random.ts";
import { describeReport, runSandboxChaos } from "../test/sandboxes/chaos.ts";

const [share = 1, seed = Math.floor(systemRandom.next() * 2 ** 31)] = process.argv.slice(2).map(Number);
if (!(share > 0) || !Number.isSafeInteger(seed)) throw new Error("usage: chaos-sandboxes.ts [share] [seed]");
const postgres = findPostgresPrograms()?.folder;
const of = (all: number) => Math.ceil(all * share);
const wanted = { kills: of(300), creates: of(2_000), disconnects: of(1_000) };
const { kills, creates, disconnects } = wanted;
const place = postgres === undefined ? "a catalog in a file" : "PostgreSQL";
console.log(`${kills} kills, ${creates} sandboxes, ${disconnects} disconnects, seed ${seed}, on ${place}`);
const report = await runSandboxChaos({ ...wanted, seed, postgres, say: (line) => console.log(line) });
console.log(describeReport(report));
for (const problem of report.problems) console.error(problem);
if (report.problems.length > 0) console.error(`the logs are in ${report.folder}`);
process.exitCode = report.problems.length > 0 ? 1 : 0;

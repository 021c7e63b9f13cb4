import { killRounds, SOAK } from "../test/faults/kill-rounds.ts";

/**
 * The long forms of `test/faults/kill.long.test.ts`:
 *
 *     node scripts/kill.ts [kills] [seed]       small requests, many kills
 *     node scripts/kill.ts soak [kills] [seed]  requests of all sizes up to 15 MB for about a minute
 */
const args = process.argv.slice(2);
const soak = args[0] === "soak";
const [kills = soak ? 15 : 200, seed = Math.floor(Math.random() * 2 ** 31)] = args.slice(soak ? 1 : 0).map(Number);
console.log(`seed ${seed}`);
const report = await killRounds({ kills, seed, ...(soak ? SOAK : {}) });
console.log(JSON.stringify(report, undefined, 2));
process.exitCode = report.problems.length === 0 ? 0 : 1;

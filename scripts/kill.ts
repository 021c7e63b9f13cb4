import { killRounds } from "../test/faults/kill-rounds.ts";

/** The long form of `test/faults/kill.test.ts`: `node scripts/kill.ts [kills] [seed]`. */
const kills = Number(process.argv[2] ?? 200);
const seed = Number(process.argv[3] ?? Math.floor(Math.random() * 2 ** 31));
console.log(`seed ${seed}`);
const report = await killRounds({ kills, seed });
console.log(JSON.stringify(report, undefined, 2));
process.exitCode = report.problems.length === 0 ? 0 : 1;

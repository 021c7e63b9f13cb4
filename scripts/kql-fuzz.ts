/**
 * The long form of `test/kql/fuzz/fuzz.long.test.ts`: mutated KQL texts are refused with their place, or become SQL that
 * DuckDB binds.
 *
 *     node scripts/kql-fuzz.ts [texts] [seed] [first]
 *
 * A text is made from the seed and its own number, so `node scripts/kql-fuzz.ts 1 <seed> <number>` checks one again. Exits
 * with 1 where something is wrong, after an example of each kind.
 */
import { systemRandom } from "../src/core/random.ts";
import { fuzz, fuzzMaterial, shown, textOf } from "../test/kql/fuzz/fuzz.test-kit.ts";

const PROGRESS = 5_000;

const [texts = 100_000, seed = Math.floor(systemRandom.next() * 2 ** 31), first = 0] = process.argv.slice(2).map(count);
console.log(`${texts} texts, seed ${seed}, from number ${first}`);
if (texts === 1) console.log(textOf(await fuzzMaterial(), seed, first));
const report = await fuzz({
  seed,
  texts,
  first,
  onText: (done) => {
    if (done % PROGRESS === 0) console.log(`${done} texts`);
  },
});
if (report.findings.length > 0) console.error(`\n${shown(report.findings)}`);
console.log(
  `\n${report.texts} texts: ${report.translated} translated, ${report.refused} refused, ${report.findings.length} wrong`,
);
process.exitCode = report.findings.length === 0 ? 0 : 1;

function count(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new Error(`${text} is no count; usage: kql-fuzz.ts [texts] [seed] [first]`);
  }
  return value;
}

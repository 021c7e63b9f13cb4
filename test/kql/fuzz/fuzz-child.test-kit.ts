import { Checker } from "./checked.test-kit.ts";
import { fuzzMaterial, textOf } from "./fuzz.test-kit.ts";
import { TABLES } from "./tables.test-kit.ts";

/**
 * Checks texts in a process of its own, which a text may stop or kill: `node fuzz-child.test-kit.ts SEED FROM TO`. Says on
 * its output which it is at, in a line each, and what is wrong, as JSON.
 */
const [seed = 0, from = 0, to = 0] = process.argv.slice(2).map(Number);
const material = await fuzzMaterial();
const checker = await Checker.open(TABLES);
for (let i = from; i < to; i++) {
  process.stdout.write(`${i}\n`);
  const checked = await checker.check(textOf(material, seed, i));
  process.stdout.write(`${JSON.stringify(checked)}\n`);
}

/** `node test/kql/try.ts 'print 1'` runs a text; `node test/kql/try.ts strings dates` the cases of these files. */
import { inspect } from "node:util";
import type { KqlCases } from "./cases.test-kit.ts";
import { differenceOf, Translated } from "./translated.test-kit.ts";

function print(value: unknown): void {
  process.stdout.write(`${typeof value === "string" ? value : inspect(value, { depth: 9 })}\n`);
}

const translated = await Translated.open();
const words = process.argv.slice(2);
if (words.some((word) => /\s/.test(word))) {
  for (const query of words) print(await translated.run(query));
} else {
  let [passed, failed] = [0, 0];
  for (const word of words) {
    const module = (await import(`./cases/${word}.ts`)) as Record<string, KqlCases>;
    for (const [about, cases] of Object.values(module).flatMap((one) => Object.entries(one))) {
      for (const one of cases) {
        const difference = differenceOf(one, await translated.run(one.query));
        if (difference === undefined) passed++;
        else {
          failed++;
          print(`${word} > ${about}: ${one.query}\n    ${difference}`);
        }
      }
    }
  }
  print(`${passed} passed, ${failed} failed`);
}

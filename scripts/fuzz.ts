/**
 * Holds the byte scanner against the reference on as many generated and mutated bodies as one likes; meant for every
 * night, with another seed each time.
 *
 *     node scripts/fuzz.ts [documents] [seed]
 *
 * Stops at the first difference, with what is left of the bodies when nothing more can be taken out of them, and exit
 * code 1. The same seed makes the same documents.
 */
import { systemClock } from "../src/core/clock.ts";
import { seededRandom, systemRandom } from "../src/core/random.ts";
import { formatColumnType } from "../src/format/types.ts";
import { counted, difference } from "../src/format/ndjson/differential.test-kit.ts";
import { randomCase, type Case } from "../src/format/ndjson/generate-cases.test-kit.ts";
import { minimise } from "../src/format/ndjson/minimise.test-kit.ts";

const PROGRESS_MS = 10_000;

const documents = argument(2, 1_000_000);
const seed = argument(3, Math.floor(systemRandom.next() * 2 ** 31));
console.log(`${documents} documents, seed ${seed}`);
process.exitCode = run();

function run(): number {
  const random = seededRandom(seed);
  const kinds = new Map<string, number>();
  const startedMs = systemClock.monotonicMs();
  let reportedMs = startedMs;
  let done = 0;
  while (done < documents) {
    const one = randomCase(random);
    if (difference(one.columns, one.bodies) !== undefined) return report(one, done);
    kinds.set(one.kind, (kinds.get(one.kind) ?? 0) + one.bodies.length);
    done += one.bodies.length;
    const nowMs = systemClock.monotonicMs();
    if (nowMs - reportedMs < PROGRESS_MS) continue;
    reportedMs = nowMs;
    console.log(`${done} documents, ${Math.round((done * 1000) / (nowMs - startedMs))} per second`);
  }
  const fast = Math.round((1 - counted.slowRows / counted.rows) * 100);
  console.log(
    `no difference in ${done} documents: ${counted.rows} rows, ${fast}% of them read by the byte scanner itself, ${counted.moduleRows} by its module`,
  );
  for (const [kind, count] of kinds) console.log(`  ${kind}: ${count}`);
  return 0;
}

function report({ kind, columns, bodies }: Case, done: number): number {
  const smaller = minimise(bodies, (some) => difference(columns, some) !== undefined);
  console.error(`difference after ${done} documents, seed ${seed}, ${kind}`);
  console.error(`table: ${columns.map(({ name, type }) => `${name}:${formatColumnType(type)}`).join(", ")}`);
  for (const { bytes, evolve } of smaller) {
    console.error(`body (evolve ${evolve}, latin1): ${JSON.stringify(Buffer.from(bytes).toString("latin1"))}`);
  }
  console.error(difference(columns, smaller));
  return 1;
}

function argument(index: number, otherwise: number): number {
  const text = process.argv[index];
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`${text} is no count; usage: fuzz.ts [documents] [seed]`);
  return value;
}

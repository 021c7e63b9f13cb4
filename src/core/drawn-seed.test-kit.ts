import { seededRandom, systemRandom, type Random } from "./random.ts";

const MOST = 2 ** 31;

/** The seed of a random test: another one in each run, which is printed, or that of `ENGINE_TEST_SEED`, to repeat a run. */
export function drawnSeed(): number {
  const given = process.env["ENGINE_TEST_SEED"];
  const seed = given === undefined ? Math.floor(systemRandom.next() * MOST) : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`ENGINE_TEST_SEED is ${given}, which is no seed`);
  process.stdout.write(`ENGINE_TEST_SEED=${seed}\n`);
  return seed;
}

/** The randomness of a random test, of a drawn seed. */
export function drawnRandom(): Random {
  return seededRandom(drawnSeed());
}

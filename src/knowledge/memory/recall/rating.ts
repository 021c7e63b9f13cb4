import type { RatingOptions } from "./question.ts";

/** How much a memory counts by what it is, whatever was asked. */
export function importanceFactor(importance: number): number {
  return 0.7 + 0.6 * importance;
}

const DAY_US = 86_400_000_000;

/** After so many days without a new version a memory counts half of what its age may take. */
const HALF_LIFE_DAYS = 180;
/** By type, with `ENGINE_MEMORY_CLASS_DECAY`: what people like changes slowly, what was decided is overtaken. */
const HALF_LIFE_DAYS_BY_TYPE: Readonly<Record<string, number>> = {
  preference: 730,
  procedure: 365,
  fact: 180,
  learning: 120,
  decision: 90,
};

/** Age alone never takes more than this part: what is old may still be the answer. */
const MOST_DECAY = 0.2;
const MOST_DECAY_BY_TYPE = 0.6;

export function ageFactor(ageUs: number, memoryType: string, { classDecay }: RatingOptions): number {
  const days = Math.max(0, ageUs) / DAY_US;
  const halfLife = classDecay ? (HALF_LIFE_DAYS_BY_TYPE[memoryType] ?? HALF_LIFE_DAYS) : HALF_LIFE_DAYS;
  const most = classDecay ? MOST_DECAY_BY_TYPE : MOST_DECAY;
  return 1 - most * (1 - 2 ** (-days / halfLife));
}

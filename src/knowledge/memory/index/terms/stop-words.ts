import { stemEnglish } from "./porter2.ts";

/**
 * Words that say little about what a question asks. They are in the index like all others, and a question that has no
 * other words is answered by them; beside others they count for a fraction.
 */
const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    "a about after all also am an and any are as at be because been before being but by can could did do does doing for " +
    "from had has have having he her here hers him his how i if in into is it its just me my no nor not of on or our out " +
    "over own she should so some such than that the their them then there these they this those through to too under up " +
    "was we were what when where which while who whom why will with would you your please tell"
  )
    .split(" ")
    .map(stemEnglish),
);

const STOP_WEIGHT = 0.2;

/** How much a term of a question counts. */
export function termWeight(term: string): number {
  return STOP_WORDS.has(term) ? STOP_WEIGHT : 1;
}

import type { NodeRecord } from "../model.ts";
import { foldedWords } from "../index/terms/fold.ts";

/**
 * Which texts say the same as a better one: they share nine of ten words, and all numbers. `port 8080` and `port 8081`
 * are two facts.
 */
export class Thinner {
  readonly #kept: Words[] = [];

  /** Whether the text says something new; if so it is remembered. */
  keeps({ name, content }: Pick<NodeRecord, "name" | "content">): boolean {
    const words = wordsOf(`${name ?? ""} ${content}`);
    if (this.#kept.some((other) => isAlike(other, words))) return false;
    this.#kept.push(words);
    return true;
  }
}

type Words = { all: ReadonlySet<string>; numbers: ReadonlySet<string> };

const ALIKE = 0.9;

function wordsOf(text: string): Words {
  const all = new Set(foldedWords(text));
  return { all, numbers: new Set([...all].filter((word) => /\p{N}/u.test(word))) };
}

function isAlike(a: Words, b: Words): boolean {
  if (a.numbers.size !== b.numbers.size) return false;
  const shared = sharedBy(a.all, b.all);
  const union = a.all.size + b.all.size - shared;
  return union > 0 && shared >= ALIKE * union && sharedBy(a.numbers, b.numbers) === a.numbers.size;
}

function sharedBy(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let shared = 0;
  for (const word of a) if (b.has(word)) shared++;
  return shared;
}

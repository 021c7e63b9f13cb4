import type { KnownAddresses } from "./addresses.ts";

const REMOVED = "{link removed}";
/** A destination that is longer than this is none that anybody follows by intention. */
const MAX_HELD_CHARS = 2_048;

/**
 * An answer as it is shown, made of what a model says piece by piece. What is rendered as Markdown or HTML somewhere must
 * reach no server by being looked at, and no address but those that stood in the question or in the data:
 *
 * - an image (`![`) becomes a link, and a link, in whatever form, keeps its destination where that is known;
 * - no tag begins: a blank stands behind `<` where a letter, `/`, `!` or `?` does;
 * - an address in the text (`scheme://`, `www.host`) stays where it is known.
 *
 * It looks at no code fences: where one begins and ends, renderers do not agree.
 */
export class AnswerText {
  readonly #known: KnownAddresses;
  #held = "";

  constructor(known: KnownAddresses) {
    this.#known = known;
  }

  /** Takes the next piece and gives what can be shown by now. */
  push(piece: string): string {
    this.#held += piece;
    const end = settledUpTo(this.#held);
    const text = this.#held.slice(0, end);
    this.#held = this.#held.slice(end);
    return this.#shown(text);
  }

  /** What was held back. */
  end(): string {
    const text = this.#held;
    this.#held = "";
    return this.#shown(text);
  }

  #shown(text: string): string {
    return text
      .replace(/!+(?=\[)/gu, "")
      .replace(INLINE, (_whole, destination: string) =>
        this.#isKnown(destination) ? `](${destination})` : `] ${REMOVED}`,
      )
      .replace(REFERENCE, (_whole, destination: string) =>
        this.#isKnown(destination) ? `]: ${destination}` : `] : ${REMOVED}`,
      )
      .replace(AUTOLINK, (_whole, destination: string) => destination)
      .replace(TAG, "< ")
      .replace(BARE, (found) => (this.#known.has(found) ? found : REMOVED));
  }

  #isKnown(destination: string): boolean {
    const named = destination.replace(/^<|>$/gu, "");
    return RELATIVE.test(named) || this.#known.has(named);
  }
}

/** `](destination "title")`, up to its end or that of the text. */
const INLINE = /\]\(\s*(<[^>\n]*>|[^\s)]*(?:\([^\s)]*\)[^\s)]*)*)[^)]*(?:\)|$)/gu;
/** `]: destination`. */
const REFERENCE = /\]:\s*(\S*)/gu;
const AUTOLINK = /<([a-z][a-z0-9+.-]{1,31}:[^\s<>]*)>/giu;
const TAG = /<(?=[a-z/!?])/giu;
/** What renderers make links of by themselves. */
const BARE = /(?:[a-z][a-z0-9+.-]{0,31}:[/\\]{2}|www\.)[^\s<>"'`]+/giu;
/** A destination on the server that shows the answer: it cannot name another. */
const RELATIVE = /^(?!\/\/)[\w\-.#?=/]*$/u;

/** How much of the text no later piece can change the meaning of. */
function settledUpTo(text: string): number {
  // A link whose end has not come, from its "]" on.
  const open = Math.max(text.lastIndexOf("]("), text.lastIndexOf("]:"));
  if (open !== -1 && text.length - open < MAX_HELD_CHARS) {
    const rest = text.slice(open + 2);
    const isOver = text[open + 1] === "(" ? rest.includes(")") : /\S\s/u.test(rest);
    if (!isOver) return wordStart(text, open);
  }
  return wordStart(text, text.length);
}

/** Where the last word before `end` begins: it may go on. */
function wordStart(text: string, end: number): number {
  const limit = Math.max(0, end - MAX_HELD_CHARS);
  for (let i = end; i > limit; i--) if (/\s/u.test(text[i - 1] ?? "")) return i;
  return limit === 0 ? 0 : end;
}

import type { KnownAddresses } from "./addresses.ts";

const REMOVED = "{link removed}";
/** A destination that is longer than this is none that anybody follows by intention. */
const MAX_HELD_CHARS = 2_048;
/** Taking one thing out may bring another about; what is still not at rest after so many turns loses its brackets. */
const TURNS = 8;

/**
 * A text of a model as it is shown, made of what the model says piece by piece. What is rendered as Markdown or HTML somewhere
 * must reach no server by being looked at, and no address but those that stood in the question or in the data:
 *
 * - an image (`![`) becomes a link, and a link, in whatever form, keeps its destination where that is known;
 * - no tag begins: a blank stands behind `<` where a letter, `/`, `!` or `?` does;
 * - an address in the text (`scheme://`, `www.host`) stays where it is known.
 *
 * It looks at no code fences: where one begins and ends, renderers do not agree. What a renderer makes links of that are
 * written without any scheme (`host.example/path`) stays as it is.
 */
export class AnswerText {
  readonly #known: KnownAddresses;
  #held = "";

  constructor(known: KnownAddresses) {
    this.#known = known;
  }

  /** Takes the next piece and gives what can be shown by now. */
  push(piece: string): string {
    // The store takes NUL out: what stood on its sides would meet there.
    this.#held += piece.replaceAll("\0", "");
    let shown = "";
    while (this.#held.length > 0) {
      const end = settledUpTo(this.#held);
      if (end > 0) {
        shown += this.#shown(this.#held.slice(0, end));
        this.#held = this.#held.slice(end);
      }
      if (this.#held.length <= MAX_HELD_CHARS) break;
      this.#held = broken(this.#held);
    }
    return shown;
  }

  /** Whether nothing is held back. */
  get isEmpty(): boolean {
    return this.#held === "";
  }

  /** What was held back. */
  end(): string {
    const text = this.#held;
    this.#held = "";
    return this.#shown(text);
  }

  #shown(text: string): string {
    let shown = text;
    for (let turn = 0; turn < TURNS; turn++) {
      const before = shown;
      shown = this.#oneTurn(before);
      if (shown === before) return shown;
    }
    return shown.replaceAll(/[![\]<]/gu, "");
  }

  #oneTurn(text: string): string {
    return this.#links(text)
      .replace(REFERENCE, (whole, destination: string) => {
        const kept = this.#kept(destination);
        if (kept === undefined) return `] : ${REMOVED}`;
        return kept === destination ? whole : `]: ${kept}`;
      })
      .replace(AUTOLINK, (_whole, destination: string) => destination)
      .replace(TAG, "< ")
      .replace(BARE, (found) => {
        const known = this.#known.formOf(found);
        return known === undefined ? REMOVED : `${known}${found.slice(known.length)}`;
      })
      .replace(IMAGE, "");
  }

  /** The text with each inline link as it may stay. */
  #links(text: string): string {
    let [shown, from] = ["", 0];
    for (let at = text.indexOf("]("); at !== -1; at = text.indexOf("](", from)) {
      shown += text.slice(from, at);
      const link = linkAt(text, at + 2);
      const kept = link === undefined ? undefined : this.#kept(link.destination);
      if (link === undefined) shown += "] (";
      else shown += kept === undefined ? `] ${REMOVED}` : `](${kept})`;
      from = link?.end ?? at + 2;
    }
    return shown + text.slice(from);
  }

  /** A destination that may stay, as it is known. */
  #kept(destination: string): string | undefined {
    const named = destination.replace(/^<|>$/gu, "");
    if (RELATIVE.test(named)) return destination;
    return this.#known.formOf(named);
  }
}

/** `]: destination`. */
const REFERENCE = /\]:\s*(\S*)/gu;
const AUTOLINK = /<([a-z][a-z0-9+.-]{1,31}:[^\s<>]*)>/giu;
const TAG = /<(?=[a-z/!?])/giu;
const IMAGE = /(?<!!)!+(?=\[)/gu;
/** What renderers make links of by themselves, up to where they do. */
const BARE = /(?:[a-z][a-z0-9+.-]{0,31}:[/\\]{2}|www\.)[^\s<]+/giu;
/** A destination on the server that shows the answer: it cannot name another. */
const RELATIVE = /^(?!\/\/)[\w\-.#?=/]*$/u;

/** The destination of a link without its title, and where the link ends: behind its bracket. Undefined for what is none. */
function linkAt(text: string, start: number): { destination: string; end: number } | undefined {
  let at = afterBlanks(text, start);
  const begin = at;
  for (let depth = 0; at < text.length && !isBlank(text.charCodeAt(at)); at++) {
    if (text[at] === "(") depth++;
    else if (text[at] === ")" && depth-- === 0) return { destination: text.slice(begin, at), end: at + 1 };
  }
  const destination = text.slice(begin, at);
  at = afterBlanks(text, at);
  if (text[at] === ")") return { destination, end: at + 1 };
  const title = TITLE.exec(text.slice(at, at + MAX_HELD_CHARS));
  return title === null ? undefined : { destination, end: at + title[0].length };
}

function afterBlanks(text: string, start: number): number {
  let at = start;
  while (at < text.length && isBlank(text.charCodeAt(at))) at++;
  return at;
}

/** A title in quotes up to the bracket that ends its link. */
const TITLE = /^(?:"[^"]*"|'[^']*')\s*\)/u;

/** How much of the text no later piece can change the meaning of: it ends before a word, and in no link. */
function settledUpTo(text: string): number {
  let end = wordStart(text, text.length);
  for (let open = openLink(text, end); open !== -1; open = openLink(text, end)) end = wordStart(text, open);
  return end;
}

/** Where the last link before `end` begins, if it is not over there; else -1. */
function openLink(text: string, end: number): number {
  if (end < 2) return -1;
  const at = Math.max(text.lastIndexOf("](", end - 2), text.lastIndexOf("]:", end - 2));
  if (at === -1) return -1;
  const rest = text.slice(at + 2, end);
  const isOver = text[at + 1] === "(" ? rest.includes(")") : /\S/u.test(rest);
  return isOver ? -1 : at;
}

/** Where the last word before `end` begins: it may go on. Scripts without blanks are settled by the character. */
function wordStart(text: string, end: number): number {
  let start = end;
  while (start > 0 && !isBlank(text.charCodeAt(start - 1))) start--;
  return end === text.length && PLAIN.test(text.slice(start)) ? end : start;
}

function isBlank(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d);
}

/** Letters and marks alone, the last one of a script that has no blanks: no address can end there. */
const PLAIN =
  /^[\p{L}\p{M}\p{N}\u3001\u3002\uff0c]{0,2048}[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\u3001\u3002\uff0c]$/u;

/** A text that no blank ends for too long, with one: what stands on its sides does not belong together any more. */
function broken(held: string): string {
  const head = held.slice(0, MAX_HELD_CHARS).replaceAll(/\](?=[(:])/gu, `] ${REMOVED} `);
  return `${head} ${held.slice(MAX_HELD_CHARS)}`;
}

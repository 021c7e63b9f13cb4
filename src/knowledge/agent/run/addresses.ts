/** What looks like an address in a text: up to what cannot stand in one, or would end it in prose or markup. */
const ADDRESS = /[a-z][a-z0-9+.-]{0,20}:\/\/[^\s<>"'`\\^{}|[\]]+/giu;
/** In prose these end the sentence, and not the address. */
const TRAILING = /[.,;:!?)*_~\u2026]+$/u;

/**
 * The addresses that stood whole in the question or in what the tools answered. An answer may name these and no others: one
 * that a model puts together could carry what it has read to whoever wrote it into a row.
 */
export class KnownAddresses {
  readonly #known = new Set<string>();

  /** Takes note of every address in the text. */
  learn(text: string): void {
    for (const [found] of text.matchAll(ADDRESS)) this.#known.add(bare(found));
  }

  has(address: string): boolean {
    return this.#known.has(bare(address));
  }
}

function bare(address: string): string {
  // A closing bracket may be a part of it, where it opened one.
  const cut = address.replace(TRAILING, "");
  return address.startsWith(`${cut})`) && cut.includes("(") ? `${cut})` : cut;
}

/** What looks like an address in a text: up to what cannot stand in one, or would end it in prose or markup. */
const ADDRESS = /[a-z][a-z0-9+.-]{0,20}:\/\/[^\s<>"'`\\^{}|[\]]+/giu;
/** At the end of an address these belong to what stands around it. */
const TRAILING: ReadonlySet<string> = new Set(".,;:!?)*_~\u2026\"'`]}|>");
/** Of what stands around an address: more is no punctuation. */
const TRAILING_CHARS = 4;

/**
 * The addresses that stood whole in the question or in what the tools answered. An answer may name these and no others: one
 * that a model puts together could carry what it has read to whoever wrote it into a row.
 *
 * A query can still put one together, as `url || secret` of a row: an address whose beginning stands in the query itself is
 * not learned, but one that is made of columns alone looks like any other.
 */
export class KnownAddresses {
  readonly #known = new Set<string>();

  /** Takes note of every address in the text but those whose scheme and host stand in `input`, which a model wrote. */
  learn(text: string, input = ""): void {
    for (const [found] of text.matchAll(ADDRESS)) {
      const address = found.slice(0, endOf(found));
      const origin = URL.parse(address)?.host ?? address;
      if (input === "" || !input.toLowerCase().includes(origin.toLowerCase())) this.#known.add(address);
    }
  }

  /** The known address that this is; undefined where it is none. What it has more is what stands around it. */
  formOf(address: string): string | undefined {
    if (this.#known.has(address)) return address;
    let end = address.length;
    while (end > 0 && TRAILING.has(address[end - 1] ?? "")) {
      end--;
      // A bracket may be a part of it, where it opened one.
      if (this.#known.has(address.slice(0, end))) return address.slice(0, end);
      if (address.length - end > TRAILING_CHARS) return undefined;
    }
    return undefined;
  }
}

/** Where the address itself ends. */
function endOf(found: string): number {
  let end = found.length;
  while (end > 0 && TRAILING.has(found[end - 1] ?? "")) end--;
  const opens = found.slice(0, end).includes("(") && found[end] === ")";
  return opens ? end + 1 : end;
}

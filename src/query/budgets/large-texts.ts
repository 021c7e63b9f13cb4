import { createHash } from "node:crypto";

/**
 * Texts of queries that turned out to be large, the last so many. Dashboards send the same ones again and again; those
 * need not take a process of the small ones for a while each time, only to be sent away.
 */
export class LargeTexts {
  readonly #known = new Set<string>();
  readonly #capacity: number;

  constructor(capacity = 1_000) {
    this.#capacity = capacity;
  }

  has(query: QueryText): boolean {
    // Most servers have none, and then nothing is to be hashed.
    return this.#known.size > 0 && this.#known.has(keyOf(query));
  }

  add(query: QueryText): void {
    const key = keyOf(query);
    this.#known.delete(key);
    this.#known.add(key);
    if (this.#known.size <= this.#capacity) return;
    const [oldest] = this.#known;
    if (oldest !== undefined) this.#known.delete(oldest);
  }

  delete(query: QueryText): void {
    if (this.#known.size > 0) this.#known.delete(keyOf(query));
  }
}

/** An exploration has the same text for many tables. */
type QueryText = { database: string; text: string; exploring?: { selection: { table: string } } };

function keyOf({ database, text, exploring }: QueryText): string {
  const table = exploring === undefined ? "" : `\0${exploring.selection.table}`;
  return createHash("sha256").update(`${database}\0${text}${table}`).digest("base64");
}

/** What stands for names that have no label of their own; no database can be called so. */
export const OTHER_NAMES = "_other";

/** Names of which only the first so many have a label of their own: who sends requests may make up any number. */
export class BoundedLabel {
  readonly #known = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** The name, or `OTHER_NAMES`. */
  of(name: string): string {
    if (this.#known.has(name)) return name;
    if (this.#known.size >= this.#most) return OTHER_NAMES;
    this.#known.add(name);
    return name;
  }
}

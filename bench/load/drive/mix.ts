/**
 * Chooses by shares: the one that is furthest behind its share comes next, so that after any number of choices each has
 * come as often as its share says, give or take one.
 */
export class Mix {
  readonly #shares: readonly number[];
  readonly #due: number[];

  /** Shares add up to 1. */
  constructor(shares: readonly number[]) {
    this.#shares = shares;
    this.#due = shares.map(() => 0);
  }

  /** The index of a share. */
  next(): number {
    let chosen = 0;
    for (const [index, share] of this.#shares.entries()) {
      const due = (this.#due[index] ?? 0) + share;
      this.#due[index] = due;
      if (due > (this.#due[chosen] ?? 0)) chosen = index;
    }
    this.#due[chosen] = (this.#due[chosen] ?? 0) - 1;
    return chosen;
  }
}

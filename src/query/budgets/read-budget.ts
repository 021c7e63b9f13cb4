import { budgetError } from "./budget.ts";

/**
 * What one query may read from the object store. Bytes are charged before they are requested, so the store never
 * delivers more than was allowed; what comes from the cache, or from a fetch that another query pays for, is free.
 */
export class ReadBudget {
  readonly #allowedBytes: number;
  #usedBytes = 0;

  constructor(allowedBytes: number) {
    this.#allowedBytes = allowedBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  fits(sizeBytes: number): boolean {
    return this.#usedBytes + sizeBytes <= this.#allowedBytes;
  }

  /** Throws `EngineError` `budget_exceeded` when so many bytes more are too many; nothing is charged. */
  check(sizeBytes: number): void {
    if (this.fits(sizeBytes)) return;
    throw budgetError("object_store_bytes", this.#usedBytes + sizeBytes, this.#allowedBytes);
  }

  /** Charges, or throws like `check`. */
  charge(sizeBytes: number): void {
    this.check(sizeBytes);
    this.#usedBytes += sizeBytes;
  }
}

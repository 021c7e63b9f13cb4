import { EngineError } from "../core/errors.ts";
import { LIMITS } from "../core/limits.ts";
import type { Catalog } from "./catalog.ts";

/**
 * Asks as of the head; anew when a deletion of rows makes that unreadable meanwhile (`Catalog.deleteRows`), which it does
 * to every head before its own.
 */
export async function atHead<T>(catalog: Pick<Catalog, "head">, ask: (head: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const { id } = await catalog.head();
    try {
      return await ask(id);
    } catch (error) {
      const isExpired = error instanceof EngineError && error.code === "snapshot_expired";
      if (!isExpired || attempt === LIMITS.commitAttempts) throw error;
    }
  }
}

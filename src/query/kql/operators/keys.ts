import type { Rel } from "../plan/rel.ts";

/** A plugin's columns depend on rows: its keys must be read first, and the text translated again with them. */
export class KeysNeeded extends Error {
  /** Gives the keys: one text column. */
  readonly rel: Rel;

  constructor(rel: Rel) {
    super("the keys of a plugin must be read first");
    this.rel = rel;
  }
}

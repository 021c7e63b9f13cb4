import type { JsonObject } from "./tree.ts";

/** One mention of a table. */
export type TableUse = {
  name: string;
  /** As written before the dot; empty without. */
  schema: string;
  position: number | undefined;
  /** `AT (VERSION => …)`; the expression is free of columns. */
  travel?: { unit: string; expression: JsonObject };
  /** Bounds on `at` that every row must satisfy that this mention can contribute. */
  bounds: Bound[];
};

/** A comparison of `at` with an expression free of columns. */
export type Bound = { operator: ">" | ">=" | "<" | "<=" | "="; expression: JsonObject };

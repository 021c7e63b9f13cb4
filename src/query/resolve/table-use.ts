import type { Condition } from "./predicates.ts";
import type { Top } from "./top.ts";
import type { JsonObject } from "../parse/tree.ts";

/** One mention of a table. */
export type TableUse = {
  name: string;
  /** As written before the dot; empty without. */
  schema: string;
  position: number | undefined;
  /** The common table expression, of those in scope, whose name is near. */
  cte?: string;
  /** `AT (VERSION => …)` or `AT (TIMESTAMP => …)`; the expression is free of columns. */
  travel?: { unit: string; expression: JsonObject };
  /** Bounds on `at` that every row must satisfy that this mention can contribute. */
  bounds: Bound[];
  /** The same of other columns. */
  conditions: Condition[];
  /** Rows that matter at most, of those within the bounds. */
  top?: Top;
  /** Whether the query may touch columns that it does not name (`*`). */
  needsAllColumns: boolean;
};

/** A comparison of `at` with an expression free of columns. */
export type Bound = { operator: ">" | ">=" | "<" | "<=" | "="; expression: JsonObject };

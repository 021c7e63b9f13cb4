import type { FieldPath } from "./fields.ts";
import type { Operator } from "./filters.ts";

/** What can be done with a value of a row. */
export type RowActions = {
  filter: (field: FieldPath, op: Operator, value: string) => void;
  facet: (field: FieldPath) => void;
  around: (at: string) => void;
};

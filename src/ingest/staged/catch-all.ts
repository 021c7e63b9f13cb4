import { foldName } from "../../core/names.ts";
import { CATCH_ALL_COLUMN, type ColumnSpec } from "../../format/types.ts";

/** Whether a table of these columns can keep any value: its `props` can hold JSON text. */
export function hasCatchAll(columns: readonly ColumnSpec[]): boolean {
  return columns.some(({ name, type }) => {
    return foldName(name) === CATCH_ALL_COLUMN && (type.kind === "string" || type.kind === "dynamic");
  });
}

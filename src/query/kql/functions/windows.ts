import { columnExpr, type Expr } from "../plan/expression.ts";
import type { Call } from "../scope.ts";
import { no, type FunctionRule, type FunctionTable } from "./table.ts";

/**
 * Functions over rows in order. Operators compute them in columns of their own before anything else of theirs
 * (`operators/windowed.ts`), since SQL has no window inside another.
 */
export const WINDOWS: FunctionTable = {
  next: inOrder(),
  prev: inOrder(),
  row_cumsum: inOrder(),
  row_number: inOrder(),
  row_rank: no("it is not in the reference: use row_rank_dense() or row_rank_min()"),
  row_rank_dense: inOrder(),
  row_rank_min: inOrder(),
  row_window_session: inOrder(),
};

function inOrder(): FunctionRule {
  return { special: computedBefore };
}

function computedBefore({ name, node, scope, refuse }: Call): Expr {
  const column = scope.windows?.get(node);
  if (column === undefined) throw refuse(`${name}() stands only in extend, project, serialize and where`);
  return columnExpr(column);
}

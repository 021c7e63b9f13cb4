import { the } from "../bind/library.ts";
import { columnExpr, type Column } from "../plan/expression.ts";
import type { Call } from "../scope.ts";
import { literal } from "../values/coerce.ts";
import { no, type FunctionTable } from "./table.ts";

/** Functions over the names of columns, which are known before the query runs. */
export const COLUMN_NAMES: FunctionTable = {
  column_ifexists: { special: columnOrDefault },
  columnifexists: { special: columnOrDefault },
  iscolumnexists: { special: (call) => literal("bool", columnNamed(call) !== undefined) },
  assert: no("it ends a query by rows that it reads"),
};

function columnNamed({ argumentNodes, scope, translator, refuse }: Call): Column | undefined {
  const name = translator.constant(the(argumentNodes[0]), { variables: scope.variables });
  if (typeof name !== "string") throw refuse("the name of a column is expected");
  return scope.rel?.column(name);
}

function columnOrDefault(call: Call) {
  const column = columnNamed(call);
  return column === undefined ? call.translator.scalar(the(call.argumentNodes[1]), call.scope) : columnExpr(column);
}

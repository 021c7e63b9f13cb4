import type { KqlType } from "../contract.ts";
import { Column } from "../plan/expression.ts";
import { ValuesPlan } from "../plan/plans.ts";
import { Rel, type Named } from "../plan/rel.ts";
import { literal } from "../values/coerce.ts";
import { boundColumns } from "./columns.ts";
import { operator, type OperatorTable } from "./table.ts";

/** The columns of rows, as rows. */
export const SCHEMAS: OperatorTable = {
  GetSchemaOperator: operator<Kusto.Language.Syntax.GetSchemaOperator>((node, input, { translator }) => {
    if (node.KindParameter !== null)
      throw translator.refuse("getschema with a kind is not supported", node.KindParameter);
    const columns = boundColumns(node).map(({ name, type }): Named => ({ name, column: new Column(name, type) }));
    const rows = input.columns.map(({ name, column: { type } }, i) => [
      literal("string", name),
      literal("long", BigInt(i)),
      literal("string", NET_TYPES[type]),
      literal("string", type),
    ]);
    return new Rel(
      new ValuesPlan(
        columns.map(({ column }) => column),
        rows,
      ),
      columns,
      { isSerialized: true },
    );
  }),
};

/** What the language's own service calls the types. */
const NET_TYPES: Readonly<Record<KqlType, string>> = {
  bool: "System.SByte",
  int: "System.Int32",
  long: "System.Int64",
  real: "System.Double",
  decimal: "System.Data.SqlTypes.SqlDecimal",
  string: "System.String",
  datetime: "System.DateTime",
  timespan: "System.TimeSpan",
  guid: "System.Guid",
  dynamic: "System.Object",
};

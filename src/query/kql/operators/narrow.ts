import { the } from "../bind/library.ts";
import { Column, columnExpr, commaList, expr, raw, sql, type Sql } from "../plan/expression.ts";
import { orderBy } from "../plan/plan.ts";
import { computed, Rel, type Named } from "../plan/rel.ts";
import { UnnestPlan } from "../plan/unnest.ts";
import { literal, toText } from "../values/coerce.ts";
import { boundColumns } from "./columns.ts";
import { ascending } from "./expand.ts";
import type { PluginCall } from "./plugin.ts";

/** `narrow`: a row for each cell. */
export function narrowed({ node, input }: PluginCall): Rel {
  const numbered = computed(input, [
    {
      name: "Row",
      value: expr("long", sql`row_number() OVER (${raw(orderBy(input.order))}) - 1`, {
        nullable: false,
        isFixed: true,
      }),
    },
  ]);
  const row = the(numbered.columns[0]);
  const cells = input.columns.map(({ name, column }, i): Sql => {
    return sql`{'i': ${i}, 'c': ${literal("string", name)}, 'v': ${toText(columnExpr(column))}}`;
  });
  const cell = new Column("cell", "dynamic");
  const opened = numbered.rel.over(
    new UnnestPlan(numbered.rel.plan, new Map([[cell, expr("dynamic", sql`[${commaList(cells)}]`)]])),
  );
  const made = computed(opened, [
    { name: "Column", value: expr("string", sql`struct_extract(${cell}, 'c')`, { nullable: false }) },
    { name: "Value", value: expr("string", sql`struct_extract(${cell}, 'v')`, { nullable: false }) },
    { name: "place", value: expr("long", sql`struct_extract(${cell}, 'i')`, { nullable: false }) },
  ]);
  const [name, value, place] = made.columns;
  const columns = boundColumns(node).map(({ name: own }, i): Named => ({
    name: own,
    column: the([row, name, value][i]),
  }));
  return new Rel(made.rel.plan, columns, { order: [ascending(row), ascending(the(place))] });
}

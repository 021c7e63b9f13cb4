import { classOf, elementsOf, textOf, the, type SyntaxExpression } from "../bind/library.ts";
import { computed, type Named, type Rel } from "../plan/rel.ts";
import { as } from "../values/coerce.ts";
import { boundColumns, nameOf, showing } from "./columns.ts";
import { operator, type OperatorTable } from "./table.ts";
import { namesOf, tupleValues } from "./tuples.ts";
import { windowed } from "./windowed.ts";

type Syntax = Kusto.Language.Syntax.QueryOperator;

/** Operators that choose, name and compute columns. */
export const PROJECTIONS: OperatorTable = {
  ProjectOperator: operator<Kusto.Language.Syntax.ProjectOperator>((node, _, { translator, scope }) => {
    const nodes = elementsOf<SyntaxExpression>(node.Expressions);
    const own = windowed(nodes, scope, translator);
    return showing(own.rel, tupleValues(nodes, own, translator), boundColumns(node));
  }),
  ExtendOperator: operator<Kusto.Language.Syntax.ExtendOperator>((node, _, { translator, scope }) => {
    const nodes = elementsOf<SyntaxExpression>(node.Expressions);
    const own = windowed(nodes, scope, translator);
    return extended(own.rel, node, nodes, tupleValues(nodes, own, translator));
  }),
  SerializeOperator: operator<Kusto.Language.Syntax.SerializeOperator>((node, input, { translator, scope }) => {
    const nodes = elementsOf<SyntaxExpression>(node.Expressions);
    const own = windowed(nodes, { ...scope, rel: input.serialized() }, translator);
    if (nodes.length === 0) return own.rel;
    // The binder puts all behind what is there, under other names where they are taken.
    const added = boundColumns(node).slice(input.columns.length);
    const values = tupleValues(nodes, own, translator).map((value, i) => {
      const { name, type } = the(added[i]);
      return { name, value: as(value, type) };
    });
    const { rel, columns } = computed(own.rel, values);
    return rel.showing([...input.columns, ...added.map(({ name }, i): Named => ({ name, column: the(columns[i]) }))]);
  }),
  ProjectAwayOperator: operator<Kusto.Language.Syntax.ProjectAwayOperator>(kept),
  ProjectKeepOperator: operator<Kusto.Language.Syntax.ProjectKeepOperator>(kept),
  ProjectReorderOperator: operator<Kusto.Language.Syntax.ProjectReorderOperator>(kept),
  ProjectRenameOperator: operator<Kusto.Language.Syntax.ProjectRenameOperator>((node, input) => {
    const renamed = new Map<string, string>();
    for (const one of elementsOf<Kusto.Language.Syntax.SimpleNamedExpression>(node.Expressions)) {
      renamed.set(textOf(one.Expression).replace(/^\[["']|["']\]$/g, ""), nameOf(one) ?? "");
    }
    return input.showing(input.columns.map(({ name, column }) => ({ name: renamed.get(name) ?? name, column })));
  }),
};

/** The binder has chosen the columns by their names: wildcards are its work. */
function kept(node: Syntax, input: Rel): Rel {
  return input.showing(boundColumns(node).map(({ name }): Named => ({ name, column: the(input.column(name)) })));
}

/**
 * Adds columns, or puts them in the place of those of the same name. Those without a name of their own are called by
 * the binder: they are the columns of its result that are neither there before nor named.
 */
export function extended(
  input: Rel,
  node: SyntaxExpression,
  nodes: readonly SyntaxExpression[],
  values: Parameters<typeof showing>[1],
): Rel {
  const result = boundColumns(node);
  const names = nodes.flatMap(namesOf);
  const known = new Set([...input.columns.map(({ name }) => name), ...names]);
  const made = result.filter(({ name }) => !known.has(name));
  const items = values.map((value, i) => {
    const name = names[i] ?? the(made.shift()).name;
    const type = result.find((one) => one.name === name)?.type ?? value.type;
    return { name, value: as(value, type) };
  });
  const { rel, columns } = computed(input, items);
  const own = new Map<string, Named>(rel.columns.map((one) => [one.name, one]));
  for (const [i, { name }] of items.entries()) own.set(name, { name, column: the(columns[i]) });
  return rel.showing(result.map(({ name }) => the(own.get(name))));
}

/** Whether the node is `*`. */
export function isStar(node: SyntaxExpression): boolean {
  return classOf(node) === "StarExpression";
}

import { classOf, the } from "../bind/library.ts";
import { operator, type OperatorTable } from "./table.ts";

/** A function of the text's over the rows that come in. */
export const INVOCATIONS: OperatorTable = {
  InvokeOperator: operator<Kusto.Language.Syntax.InvokeOperator>((node, input, { translator, variables }) => {
    const called = the(node.Function);
    if (classOf(called) !== "FunctionCallExpression") throw translator.refuse("invoke calls a function", node);
    const { Parent } = node;
    const before =
      Parent !== null && classOf(Parent) === "PipeExpression"
        ? the((Parent as Kusto.Language.Syntax.PipeExpression).Expression)
        : undefined;
    // Made anew for each mention in the function, as its columns are identities.
    const make = before === undefined ? () => input : () => translator.rows(before, variables);
    return translator.invoke(called as Kusto.Language.Syntax.FunctionCallExpression, make, variables);
  }),
};

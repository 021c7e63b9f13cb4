import { classOf, type SyntaxExpression } from "./library.ts";

/** Whether the expression gives rows. */
export function isTabular(node: SyntaxExpression): boolean {
  const type = node.ResultType;
  return type !== null && ["TableSymbol", "GroupSymbol"].includes(classOf(type));
}

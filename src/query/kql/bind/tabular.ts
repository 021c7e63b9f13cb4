import { classOf, type SyntaxExpression } from "./library.ts";

/** Whether the expression gives rows. */
export function isTabular(node: SyntaxExpression): boolean {
  // What is no expression has none.
  const type = (node.ResultType as SyntaxExpression["ResultType"] | undefined) ?? null;
  return type !== null && ["TableSymbol", "GroupSymbol"].includes(classOf(type));
}

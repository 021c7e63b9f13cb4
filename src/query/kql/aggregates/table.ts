import type { Expr } from "../plan/expression.ts";
import type { Call } from "../scope.ts";

/** What becomes of an aggregate: its translation, those that make several columns, or the reason why not. */
export type AggregateRule =
  | { translate: (call: Call) => Expr }
  | { tuple: (call: Call) => readonly Expr[] }
  | { refused: string };

export type AggregateTable = Readonly<Record<string, AggregateRule | undefined>>;

/** An aggregate of its arguments' values. */
export function aggregate(translate: (args: readonly Expr[], call: Call) => Expr): AggregateRule {
  return {
    translate: (call) => {
      const args = call.argumentNodes.map((node) => call.translator.scalar(node, call.scope));
      return translate(args, call);
    },
  };
}

/** The argument in that place; the binder has counted them. */
export function arg(args: readonly Expr[], i: number): Expr {
  const value = args[i];
  if (value === undefined) throw new Error(`an aggregate has no argument ${i}`);
  return value;
}

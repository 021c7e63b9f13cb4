import type { KqlRefused, KqlType } from "../contract.ts";
import type { Expr } from "../plan/expression.ts";
import type { Call } from "../scope.ts";

/**
 * What becomes of a function of the language: `yes` with its translation, or `no` with the reason. Every function that
 * the parser knows is in one of the tables (`functions.test.ts` compares them with the library's own list).
 */
export type FunctionRule =
  | {
      translate: (args: readonly Expr[], call: Call) => Expr;
      /** Of those that make several columns: their values, where columns can be made. */
      tuple?: (args: readonly Expr[], call: Call) => readonly Expr[];
    }
  /** Translates its arguments itself. */
  | { special: (call: Call) => Expr }
  | { refused: string };

export type FunctionTable = Readonly<Record<string, FunctionRule | undefined>>;

/** A function of its arguments' values. */
export function fn(translate: (args: readonly Expr[], call: Call) => Expr): FunctionRule {
  return { translate };
}

/** A function that is not supported, and why. */
export function no(reason: string): FunctionRule {
  return { refused: reason };
}

/** The argument in that place; the binder has counted them. */
export function arg(args: readonly Expr[], i: number): Expr {
  const value = args[i];
  if (value === undefined) throw new Error(`a function has no argument ${i}`);
  return value;
}

/** What a rule of a binary operator knows beside the two values: the type that the binder found, and how to refuse. */
export type BinaryCall = { type: KqlType; refuse: (message: string) => KqlRefused };
export type BinaryRule = (left: Expr, right: Expr, call: BinaryCall) => Expr;

// oxlint-disable-next-line triple-slash-reference -- the package has its types beside its files, as globals
/// <reference path="../../../../node_modules/@kusto/language-service-next/Kusto.Language.Bridge.d.ts" />
import { loadLibrary } from "../library.ts";

/** The language's own parser and binder: see `../library.ts` for how it is loaded. */
export type Library = typeof Kusto.Language;
export type SyntaxNode = Kusto.Language.Syntax.SyntaxNode;
export type SyntaxExpression = Kusto.Language.Syntax.Expression;
export type LanguageSymbol = Kusto.Language.Symbols.Symbol;

const globals = globalThis as unknown as { Kusto?: { Language: Library }; Bridge?: { toArray<T>(list: unknown): T[] } };

export function library(): Library {
  loadLibrary();
  if (globals.Kusto === undefined) throw new Error("the KQL parser did not load");
  return globals.Kusto.Language;
}

/** Any list of the library's as an array. */
export function arrayOf<T>(list: { Count: number } | null | undefined): T[] {
  if (list === null || list === undefined || globals.Bridge === undefined) return [];
  return globals.Bridge.toArray<T>(list);
}

type Separated<T> = { Element$1: T | null };

/** The elements of a list that is separated by commas. */
export function elementsOf<T>(list: { Count: number } | null | undefined): T[] {
  return arrayOf<Separated<T>>(list).flatMap(({ Element$1: element }) => (element === null ? [] : [element]));
}

/** The class of a node or symbol, without its namespace: `FilterOperator`. */
export function classOf(node: object): string {
  const { $$name: name = "" } = node.constructor as { $$name?: string };
  return name.slice(name.lastIndexOf(".") + 1);
}

/** A part of a node that the grammar always gives it. */
export function the<T>(part: T | null | undefined): T {
  if (part === null || part === undefined) throw new Error("the KQL parser left out a part of a node");
  return part;
}

/** The text of a node or token as it is written, without what surrounds it. */
export function textOf(node: Kusto.Language.Syntax.SyntaxElement | null | undefined): string {
  return node?.ToString(library().Syntax.IncludeTrivia.Minimal)?.trim() ?? "";
}

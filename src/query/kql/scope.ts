import type { KqlRefused, KqlRequest, KqlType } from "./contract.ts";
import type { SyntaxExpression, SyntaxNode } from "./bind/library.ts";
import type { Column, Expr } from "./plan/expression.ts";
import type { Rel } from "./plan/rel.ts";

/** What a name of `let`, or a parameter of a function, stands for. */
export type Value =
  | { kind: "scalar"; value: Expr }
  /** Made anew for each mention: columns are identities. */
  | { kind: "rows"; make: () => Rel }
  /** Given to a function for each row: a query inside of it cannot know it. */
  | { kind: "ofRow" }
  | { kind: "function"; declaration: Kusto.Language.Syntax.FunctionDeclaration; scope: Variables };

export type Variables = ReadonlyMap<string, Value>;

/** Where a scalar expression stands: the rows that it may read, and the names in scope. */
export type Scope = {
  variables: Variables;
  /** The rows; undefined where there are none (`print`, `let`). */
  rel?: Rel;
  /** The two sides of a join, as `$left` and `$right`. */
  sides?: { left: Rel; right: Rel };
  /** Functions over rows in order, by their calls: where they have been computed. */
  windows?: ReadonlyMap<SyntaxNode, Column>;
  /** Whether all operators of strings mind upper and lower case: in a `search` that says so. */
  isCased?: boolean;
  /** Whether aggregates may stand here: in `summarize`. */
  aggregates?: boolean;
};

/** A call of a function, as its rule sees it. */
export type Call = {
  name: string;
  node: Kusto.Language.Syntax.FunctionCallExpression;
  /** The type that the binder found; `dynamic` where it knows none. */
  type: KqlType;
  scope: Scope;
  translator: Translating;
  /** The arguments as they were written. */
  argumentNodes: readonly SyntaxExpression[];
  refuse: (message: string) => KqlRefused;
};

/** An operator, as its rule sees it: the names in scope, and the rows that come in. */
export type OperatorContext = { translator: Translating; variables: Variables; scope: Scope & { rel: Rel } };

/** What rules ask of the translator. */
export interface Translating {
  readonly request: KqlRequest;
  /** An error at a node, or of the whole text. */
  refuse(message: string, node?: SyntaxNode | null): KqlRefused;
  /** The rows of a tabular expression. */
  rows(node: SyntaxExpression, variables: Variables): Rel;
  /** The rows that an operator makes of others. */
  apply(node: Kusto.Language.Syntax.QueryOperator, input: Rel, variables: Variables): Rel;
  /** A scalar expression in its scope. */
  scalar(node: SyntaxExpression, scope: Scope): Expr;
  /** A value that is known while translating; throws where the expression is no such. */
  constant(node: SyntaxExpression, scope: Scope): NonNullable<Expr["constant"]> | null;
  /** The rows of a stored table. */
  table(table: KqlRequest["tables"][number]): Rel;
  /** Rows that are evaluated once, whoever reads them: each call gives columns of its own. */
  shared(rel: Rel): () => Rel;
  /** A value that is evaluated once, also where it is random. */
  once(value: Expr): Expr;
  /** The one value of these rows, evaluated once; null where there is none. */
  toScalar(rel: Rel, type: KqlType): Expr;
  /** What is translated within is evaluated in its place, not once for the query: it may read rows around it. */
  inPlace<T>(translate: () => T): T;
  /**
   * Sees that this text stands behind a node: where it does not, the query is translated again with it, so that the
   * binder knows of it. Throws where the node is of a function's body.
   */
  insert(node: SyntaxExpression, text: string, usesKeys?: boolean): void;
  /** Whether the node was put there. */
  isInserted(node: SyntaxNode): boolean;
  /** The keys of a plugin whose columns depend on rows; undefined in the round that asks for them. */
  keysFor(call: SyntaxExpression): readonly string[] | undefined;
  /** The rows of a function of the text's whose first parameter is these. */
  invoke(node: Kusto.Language.Syntax.FunctionCallExpression, input: () => Rel, variables: Variables): Rel;
}

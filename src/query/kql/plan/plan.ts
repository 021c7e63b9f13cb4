import { quoteIdentifier } from "../../../io/duckdb/duckdb.ts";
import {
  columnsIn,
  Outer,
  Scalar,
  separated,
  Subquery,
  type Column,
  Mark,
  type Expr,
  type Plan,
  type Rendering,
  type Source,
  type Sql,
} from "./expression.ts";

/** How many expressions one query may be made of: functions that call each other multiply. */
const MAX_PARTS = 100_000;

export class TooLarge extends Error {}

/** What several places of a query read, evaluated once. */
type Shared = { name: string; columns: Set<Column>; uses: Set<Plan | Scalar> };

/** Names columns and shared sub-queries of one query. */
export class Renderer implements Rendering {
  readonly #names = new Map<Column, string>();
  readonly #shared = new Map<Plan | Scalar, Shared>();
  /** What is being rendered. */
  #current: Shared | undefined;
  #parts = 0;
  #lateral = 0;

  get isLateral(): boolean {
    return this.#lateral > 0;
  }

  /** Renders what is evaluated for each row around it. */
  lateral(plan: Plan, needed: ReadonlySet<Column>): string {
    this.#lateral++;
    const text = plan.render(needed, this);
    this.#lateral--;
    return text;
  }

  nameOf(column: Column): string {
    const known = this.#names.get(column);
    if (known !== undefined) return known;
    const name = quoteIdentifier(`${column.hint.slice(0, 100)}~${this.#names.size + 1}`);
    this.#names.set(column, name);
    return name;
  }

  /** SQL as text, with names of columns as `within` has them. */
  text(own: Sql, within?: (column: Column) => string | undefined): string {
    this.#parts += own.length;
    if (this.#parts > MAX_PARTS) throw new TooLarge("the query is too large");
    return own
      .map((part) => {
        if (typeof part === "string") return part;
        if (part instanceof Scalar) return `(SELECT ${this.nameOf(part.column)} FROM ${this.#nameShared(part)})`;
        if (part instanceof Subquery) return part.plan.render(new Set([part.column]), this);
        if (part instanceof Outer) return this.nameOf(part.column);
        if (part instanceof Mark) return part.text;
        return within?.(part) ?? this.nameOf(part);
      })
      .join("");
  }

  /** The name of a common table expression that holds these columns of the plan. */
  share(plan: Plan, needed: ReadonlySet<Column>): string {
    const name = this.#nameShared(plan);
    for (const column of needed) this.#shared.get(plan)?.columns.add(column);
    return name;
  }

  #nameShared(shared: Plan | Scalar): string {
    const columns = shared instanceof Scalar ? [shared.column] : [];
    const name = quoteIdentifier(`let~${this.#shared.size + 1}`);
    const entry = this.#shared.get(shared) ?? { name, columns: new Set(columns), uses: new Set() };
    this.#shared.set(shared, entry);
    this.#current?.uses.add(shared);
    return entry.name;
  }

  /** The statement with all that it shares in front of it. Call it last. */
  statement(body: string): string {
    const texts = new Map<Plan | Scalar, string>();
    // A plan may be asked for more columns by one that is rendered after it, and share in its turn.
    for (let before = -1; before !== this.#asked();) {
      before = this.#asked();
      for (const [shared, entry] of this.#shared) {
        this.#current = entry;
        texts.set(shared, (shared instanceof Scalar ? shared.plan : shared).render(entry.columns, this));
      }
    }
    const ctes = this.#sorted().map((shared) => {
      return `${this.#shared.get(shared)?.name ?? ""} AS MATERIALIZED (${texts.get(shared) ?? ""})`;
    });
    return ctes.length === 0 ? body : `WITH ${ctes.join(", ")} ${body}`;
  }

  #asked(): number {
    return [...this.#shared.values()].reduce((sum, { columns }) => sum + 1 + columns.size, 0);
  }

  /** Each after those that it reads. */
  #sorted(): (Plan | Scalar)[] {
    const sorted = new Set<Plan | Scalar>();
    const visit = (shared: Plan | Scalar): void => {
      if (sorted.has(shared)) return;
      for (const used of this.#shared.get(shared)?.uses ?? []) visit(used);
      sorted.add(shared);
    };
    for (const shared of this.#shared.keys()) visit(shared);
    return [...sorted];
  }
}

/** What `FROM` takes: the plan itself where it can be one, else as a sub-query. */
export function fromOf(plan: Plan, needed: ReadonlySet<Column>, renderer: Rendering): Source {
  return plan.source?.() ?? { from: `(${plan.render(needed, renderer)})`, nameOf: () => undefined };
}

export type OrderKey = { by: Expr; isDescending: boolean; nullsFirst: boolean };

/** What stands after ORDER BY. */
export function orderSql(keys: readonly OrderKey[]): Sql {
  const items = keys.map(({ by, isDescending, nullsFirst }): Sql => {
    return [...by.sql, isDescending ? " DESC" : " ASC", nullsFirst ? " NULLS FIRST" : " NULLS LAST"];
  });
  return separated(", ", items).raw;
}

/** The whole clause; nothing without keys. */
export function orderBy(keys: readonly OrderKey[]): Sql {
  return keys.length === 0 ? [] : ["ORDER BY ", ...orderSql(keys)];
}

/** The columns that expressions mention. */
export function mentioned(expressions: Iterable<Expr>): Set<Column> {
  const found = new Set<Column>();
  for (const { sql: own, filter } of expressions) {
    for (const column of columnsIn(own)) found.add(column);
    if (filter !== undefined) for (const column of columnsIn(filter)) found.add(column);
  }
  return found;
}

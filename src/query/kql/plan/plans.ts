import { quoteIdentifier } from "../../../io/duckdb/duckdb.ts";
import { SQL_TYPES } from "../types/types.ts";
import {
  Column,
  columnsIn,
  commaList,
  expr,
  sql,
  type Expr,
  type Plan,
  type Rendering,
  type Sql,
} from "./expression.ts";
import { fromOf, mentioned, orderSql, type OrderKey } from "./plan.ts";

/** A stored table; its columns have their own names there. */
export class TablePlan implements Plan {
  readonly #name: string;
  readonly #own: ReadonlyMap<Column, string>;

  constructor(name: string, own: ReadonlyMap<Column, string>) {
    this.#name = name;
    this.#own = own;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const items = [...needed].map((column) => `${this.#nameOf(column) ?? "NULL"} AS ${renderer.nameOf(column)}`);
    return `SELECT ${items.join(", ") || "1"} FROM ${quoteIdentifier(this.#name)}`;
  }

  source() {
    return { from: quoteIdentifier(this.#name), nameOf: (column: Column) => this.#nameOf(column) };
  }

  #nameOf(column: Column): string | undefined {
    const own = this.#own.get(column);
    return own === undefined ? undefined : quoteIdentifier(own);
  }
}

export type SelectParts = {
  from: Plan;
  /** What it computes; all other columns pass through. */
  computed: ReadonlyMap<Column, Expr>;
  where: readonly Expr[];
  /** Grouped by these, which are computed or pass through; all other columns are then aggregates. */
  groupBy?: readonly Column[];
  isDistinct?: boolean;
  order?: readonly OrderKey[];
  limit?: Sql;
};

/** A SELECT over one source. */
export class SelectPlan implements Plan {
  readonly parts: SelectParts;

  constructor(parts: SelectParts) {
    this.parts = parts;
  }

  /** Whether conditions and columns may still be added to it. */
  get isOpen(): boolean {
    const { groupBy, isDistinct, limit, computed } = this.parts;
    return (
      groupBy === undefined &&
      isDistinct !== true &&
      limit === undefined &&
      ![...computed.values()].some(({ isFixed }) => isFixed === true)
    );
  }

  /** Whether one of these reads what the SELECT itself computes. */
  isReadBy(expressions: readonly Expr[]): boolean {
    return [...mentioned(expressions)].some((column) => this.parts.computed.has(column));
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    return this.renderAs(
      [...needed].map((column) => ({ column, name: renderer.nameOf(column) })),
      renderer,
    );
  }

  /** With these names for its columns. */
  renderAs(outputs: readonly { column: Column; name: string }[], renderer: Rendering): string {
    const { computed, where, groupBy, isDistinct, order, limit } = this.parts;
    const { from, nameOf } = fromOf(this.parts.from, this.#read(outputs.map(({ column }) => column)), renderer);
    const textOf = (own: Sql): string => renderer.text(own, nameOf);
    const valueOf = (column: Column): string => textOf(computed.get(column)?.sql ?? [column]);
    const items = outputs.map(({ column, name }) => `${valueOf(column)} AS ${name}`);
    // Without keys and outputs there would be a row for each row, and not one for all.
    const none = groupBy?.length === 0 ? "count(*)" : "1";
    const clauses = [`SELECT ${isDistinct === true ? "DISTINCT " : ""}${items.join(", ") || none} FROM ${from}`];
    if (where.length > 0) {
      clauses.push(`WHERE ${where.map((one) => bracketed(textOf(one.filter ?? one.sql))).join(" AND ")}`);
    }
    // `GROUP BY ()` makes one row, also where no aggregate is wanted.
    if (groupBy !== undefined) clauses.push(`GROUP BY ${groupBy.map(valueOf).join(", ") || "()"}`);
    if (order !== undefined && order.length > 0) clauses.push(`ORDER BY ${textOf(orderSql(order))}`);
    if (limit !== undefined) clauses.push(`LIMIT ${textOf(limit)}`);
    return clauses.join(" ");
  }

  /** The columns of its source that it reads when these are wanted of it. */
  #read(wanted: Iterable<Column>): Set<Column> {
    const { computed, where, groupBy = [], order = [] } = this.parts;
    const read = mentioned([...where, ...order.map(({ by }) => by)]);
    for (const column of [...wanted, ...groupBy]) {
      const value = computed.get(column);
      for (const one of value === undefined ? [column] : columnsIn(value.sql)) read.add(one);
    }
    return read;
  }
}

function bracketed(text: string): string {
  return `(${text})`;
}

/** Values of one row of a group, and the aggregate that chooses it: of the row as a struct. */
export type Picked = { values: readonly Expr[]; choose: (row: Sql) => Sql };

/** A SELECT with groups of which it also gives columns of a row that is chosen: of these only what is read. */
export class PickPlan implements Plan {
  readonly #parts: SelectParts;
  readonly #picks: readonly (Picked & { columns: readonly Column[] })[];

  constructor(parts: SelectParts, picks: readonly (Picked & { columns: readonly Column[] })[]) {
    this.#parts = parts;
    this.#picks = picks;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const rows = new Map(this.#parts.computed);
    const fields = new Map<Column, Expr>();
    for (const { values, choose, columns } of this.#picks) {
      const wanted = values.flatMap((value, i) => {
        const column = columns[i];
        return column !== undefined && needed.has(column) ? [{ column, value, field: `c${i}` }] : [];
      });
      if (wanted.length === 0) continue;
      const row = new Column("row", "dynamic");
      const struct = commaList(wanted.map(({ field, value }) => sql`${field} := ${value}`));
      rows.set(row, expr("dynamic", choose(sql`struct_pack(${struct})`)));
      for (const { column, field } of wanted) {
        fields.set(column, expr(column.type, sql`struct_extract(${row}, '${field}')`));
      }
    }
    const from = new SelectPlan({ ...this.#parts, computed: rows });
    return new SelectPlan({ from, computed: fields, where: [] }).render(needed, renderer);
  }
}

/** Rows of one plan beside rows of another. */
export class JoinPlan implements Plan {
  readonly #parts: { kind: JoinKind; left: Plan; leftColumns: ReadonlySet<Column>; right: Plan; on: readonly Expr[] };

  /** `leftColumns`: all columns that may be read of the left side; the others are the right side's. */
  constructor(parts: {
    kind: JoinKind;
    left: Plan;
    leftColumns: ReadonlySet<Column>;
    right: Plan;
    on: readonly Expr[];
  }) {
    this.#parts = parts;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const { kind, left, leftColumns, right, on } = this.#parts;
    const read = new Set([...needed, ...mentioned(on)]);
    const leftRead = new Set([...read].filter((column) => leftColumns.has(column)));
    const rightRead = new Set([...read].filter((column) => !leftColumns.has(column)));
    const items = [...needed].map((column) => renderer.nameOf(column)).join(", ") || "1";
    const condition = on.map(({ sql: own, filter }) => bracketed(renderer.text(filter ?? own))).join(" AND ") || "true";
    const l = `(${left.render(leftRead, renderer)}) AS l`;
    const r = `(${right.render(rightRead, renderer)}) AS r`;
    if (!renderer.isLateral || !KINDS_THAT_STAND_ALONE.has(kind)) {
      return `SELECT ${items} FROM ${l} ${kind} JOIN ${r} ON ${condition}`;
    }
    const isThere = (other: string): string => `EXISTS (SELECT 1 FROM ${other} WHERE ${condition})`;
    if (kind !== "FULL") return `SELECT ${items} FROM ${l} WHERE ${kind === "ANTI" ? "NOT " : ""}${isThere(r)}`;
    const rest = [...needed].map((column) => {
      return leftColumns.has(column) ? `NULL AS ${renderer.nameOf(column)}` : renderer.nameOf(column);
    });
    return `(SELECT ${items} FROM ${l} LEFT JOIN ${r} ON ${condition})
      UNION ALL (SELECT ${rest.join(", ") || "1"} FROM ${r} WHERE NOT ${isThere(l)})`;
  }

  filtered(condition: Expr): Plan | undefined {
    const { kind, left, leftColumns, right } = this.#parts;
    const columns = [...mentioned([condition])];
    if (condition.isFixed === true || columns.length === 0) return undefined;
    if (kind !== "RIGHT" && kind !== "FULL" && columns.every((column) => leftColumns.has(column))) {
      return new JoinPlan({ ...this.#parts, left: filteredPlan(left, condition) });
    }
    if ((kind === "INNER" || kind === "RIGHT") && !columns.some((column) => leftColumns.has(column))) {
      return new JoinPlan({ ...this.#parts, right: filteredPlan(right, condition) });
    }
    return undefined;
  }
}

/** Those that DuckDB cannot evaluate for each row around them. */
const KINDS_THAT_STAND_ALONE: ReadonlySet<JoinKind> = new Set<JoinKind>(["FULL", "SEMI", "ANTI"]);

export type JoinKind = "INNER" | "LEFT" | "RIGHT" | "FULL" | "SEMI" | "ANTI";

export type Branch = { plan: Plan; values: ReadonlyMap<Column, Expr> };

/** The rows of several plans: each gives a value for every column. */
export class UnionPlan implements Plan {
  readonly #branches: readonly Branch[];

  constructor(branches: readonly Branch[]) {
    this.#branches = branches;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const selects = this.#branches.map(({ plan, values }) => {
      return new SelectPlan({ from: plan, computed: values, where: [] }).render(needed, renderer);
    });
    return selects.map(bracketed).join(" UNION ALL ");
  }

  filtered(condition: Expr): Plan | undefined {
    if (condition.isFixed === true) return undefined;
    const branches = this.#branches.map(({ plan, values }) => {
      return { plan: filteredPlan(plan, replaced(condition, values)), values };
    });
    return new UnionPlan(branches);
  }
}

/** The expression with other values for its columns. */
function replaced(value: Expr, values: ReadonlyMap<Column, Expr>): Expr {
  const within = (own: Sql): Sql => {
    return own.flatMap((part) => {
      const other = part instanceof Column ? values.get(part) : undefined;
      return other === undefined ? [part] : sql`${other}`;
    });
  };
  return { ...value, sql: within(value.sql), ...(value.filter !== undefined && { filter: within(value.filter) }) };
}

/** Rows that are written in the query. */
export class ValuesPlan implements Plan {
  readonly #columns: readonly Column[];
  readonly #rows: readonly (readonly Expr[])[];

  constructor(columns: readonly Column[], rows: readonly (readonly Expr[])[]) {
    this.#columns = columns;
    this.#rows = rows;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const columns = this.#columns.map((column, i) => ({ column, i })).filter(({ column }) => needed.has(column));
    const items = columns.map(({ column }) => renderer.nameOf(column));
    if (this.#rows.length === 0) {
      const empty = columns.map(
        ({ column }) => `CAST(NULL AS ${SQL_TYPES[column.type]}) AS ${renderer.nameOf(column)}`,
      );
      return `SELECT ${empty.join(", ") || "1"} WHERE false`;
    }
    if (columns.length === 0) return `SELECT 1 FROM range(${this.#rows.length})`;
    const rows = this.#rows.map((row) => {
      return `(${columns.map(({ i }) => renderer.text(row[i]?.sql ?? ["NULL"])).join(", ")})`;
    });
    return `SELECT ${items.join(", ")} FROM (VALUES ${rows.join(", ")}) AS v(${items.join(", ")})`;
  }
}

/** The rows of one plan, evaluated anew for each value of a key, which it reads as an `Outer` column. */
export class ForEachPlan implements Plan {
  readonly #parts: { keys: Plan; key: Column; rows: Plan };

  constructor(parts: { keys: Plan; key: Column; rows: Plan }) {
    this.#parts = parts;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const { keys, key, rows } = this.#parts;
    const items = [...needed].map((column) => renderer.nameOf(column)).join(", ") || "1";
    const [each, own] = [keys.render(new Set([key]), renderer), renderer.lateral(rows, needed)];
    return `SELECT ${items} FROM (${each}) AS p, LATERAL (${own}) AS r`;
  }
}

/** Evaluated once, however often it is read. */
export class SharedPlan implements Plan {
  readonly #plan: Plan;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const items = [...needed].map((column) => renderer.nameOf(column)).join(", ") || "1";
    return `SELECT ${items} FROM ${renderer.share(this.#plan, needed)}`;
  }
}

/** One row without columns. */
export const ONE_ROW: Plan = {
  render: () => "SELECT 1",
  source: () => ({ from: "(SELECT 1)", nameOf: () => undefined }),
};

/** An open SELECT over the plan, to which these may be added; a new one where there is none. */
export function openSelect(plan: Plan, reads: readonly Expr[]): SelectPlan {
  if (plan instanceof SelectPlan && plan.isOpen && !plan.isReadBy(reads)) return plan;
  return new SelectPlan({ from: plan, computed: new Map(), where: [] });
}

/** The rows of the plan in which the condition is true. As deep down as it goes: a table leaves out what it can. */
export function filteredPlan(plan: Plan, condition: Expr): Plan {
  const inner = plan.filtered?.(condition);
  if (inner !== undefined) return inner;
  const { parts } = openSelect(plan, [condition]);
  return new SelectPlan({ ...parts, where: [...parts.where, condition] });
}

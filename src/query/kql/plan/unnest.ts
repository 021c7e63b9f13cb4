import type { Column, Expr, Plan, Rendering, Sql } from "./expression.ts";
import { mentioned } from "./plan.ts";

/**
 * A row for each element of lists that are read side by side: shorter ones are NULL in the last rows, and there is no row
 * where all are empty or NULL.
 */
export class UnnestPlan implements Plan {
  readonly #from: Plan;
  readonly #lists: ReadonlyMap<Column, Expr>;
  readonly #index: Column | undefined;

  /** By the column that has the elements; `index`: one that counts them from 0. */
  constructor(from: Plan, lists: ReadonlyMap<Column, Expr>, index?: Column) {
    this.#from = from;
    this.#lists = lists;
    this.#index = index;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const passed = [...needed].filter((column) => column !== this.#index && !this.#lists.has(column));
    const source = this.#from.render(new Set([...passed, ...mentioned(this.#lists.values())]), renderer);
    const texts = [...this.#lists].map(([column, list]) => ({
      name: renderer.nameOf(column),
      text: renderer.text(list.sql),
    }));
    // All lists are there, as each may be the longest.
    const elements = texts.map(({ name, text }) => `unnest(${text}) AS ${name}`);
    if (this.#index !== undefined && needed.has(this.#index)) {
      const length = `greatest(${texts.map(({ text }) => `len(${text})`).join(", ")})`;
      elements.push(`unnest(range(CAST(${length} AS BIGINT))) AS ${renderer.nameOf(this.#index)}`);
    }
    return `SELECT ${[...passed.map((column) => renderer.nameOf(column)), ...elements].join(", ")} FROM (${source})`;
  }
}

/** The whole numbers from 0 on: as many as `count` says. */
export class CountingPlan implements Plan {
  readonly #count: Sql;
  readonly #number: Column;

  constructor(count: Sql, number: Column) {
    this.#count = count;
    this.#number = number;
  }

  render(_: ReadonlySet<Column>, renderer: Rendering): string {
    const name = renderer.nameOf(this.#number);
    const count = renderer.text(this.#count);
    if (/^\d+$/.test(count)) return `SELECT ${name} FROM range(${count}) AS r(${name})`;
    return `SELECT ${name} FROM (SELECT ${count} AS n) AS c, range(c.n) AS r(${name})`;
  }
}

/** Rows of a sub-query that reads columns of the outer row, for each outer row. */
export class ApplyPlan implements Plan {
  readonly #outer: Plan;
  readonly #source: OuterRowPlan;
  readonly #inner: Plan;
  readonly #innerColumns: ReadonlySet<Column>;

  /** `innerColumns`: those that are read of the sub-query; all others are the outer row's. */
  constructor(outer: Plan, source: OuterRowPlan, inner: Plan, innerColumns: ReadonlySet<Column>) {
    this.#outer = outer;
    this.#source = source;
    this.#inner = inner;
    this.#innerColumns = innerColumns;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const own = new Set([...needed].filter((column) => this.#innerColumns.has(column)));
    const inner = renderer.lateral(this.#inner, own);
    const passed = [...needed].filter((column) => !own.has(column));
    const outer = this.#outer.render(new Set([...passed, ...this.#source.read]), renderer);
    const items = [...needed].map((column) => renderer.nameOf(column)).join(", ") || "1";
    return `SELECT ${items} FROM (${outer}) AS o, LATERAL (${inner}) AS i`;
  }
}

/** The one row that a sub-query of `ApplyPlan` begins with: copies of columns of the outer row. */
export class OuterRowPlan implements Plan {
  readonly #copies: ReadonlyMap<Column, Column>;
  /** The columns of the outer row that were read when it was rendered. */
  readonly read = new Set<Column>();

  /** By the copy: what it is a copy of. */
  constructor(copies: ReadonlyMap<Column, Column>) {
    this.#copies = copies;
  }

  render(needed: ReadonlySet<Column>, renderer: Rendering): string {
    const items = [...needed].map((copy) => {
      const column = this.#copies.get(copy);
      if (column === undefined) throw new Error("a sub-query reads a column that its outer row does not have");
      this.read.add(column);
      return `${renderer.nameOf(column)} AS ${renderer.nameOf(copy)}`;
    });
    return `SELECT ${items.join(", ") || "1"}`;
  }
}

import { formatColumnType, type ColumnSpec } from "../types.ts";

/**
 * What a body had that did not fit, for its client to hear of: rows whose time could not be read, and values that went
 * to `props` because they did not fit their column. Counts per column, never values, so it stays small whatever comes;
 * only rows that the line reader takes can add to it, so the byte scanner's rows pay nothing.
 *
 * A field that goes to `props` for another reason (no column can have its name, the request or the table has no column
 * left for it, another spelling of it came first) is where the rules say, and is not told of.
 */
export type Misfit = {
  code: MisfitCode;
  /** The column that the values were for, and its type; of `kept_in_props`. */
  field?: string;
  type?: string;
  /** Rows or values. */
  count: number;
  /** 1-based, in the body. */
  firstLine: number;
};

export const MISFIT_CODES = ["at_unreadable", "kept_in_props"] as const;
export type MisfitCode = (typeof MISFIT_CODES)[number];

/** Fields named at most; a table may have 2,000 columns, and an acknowledgement is to be read. */
export const MAX_MISFIT_FIELDS = 32;

type Count = { count: number; firstLine: number };
type FieldCount = Count & { type: string };

export class Misfits {
  #times: Count | undefined;
  readonly #values = new Map<string, FieldCount>();
  /** Inferred `long` columns that a number came to which a double holds: they may be widened (`catalog/widening.ts`). */
  readonly fractions = new Set<string>();

  /** The row on that line got the time of arrival, though it has a field for its time. */
  addTime(line: number): void {
    this.#times = added(this.#times, { count: 1, firstLine: line });
  }

  /** A value on that line did not fit the column. */
  addValue({ name, type }: ColumnSpec, line: number): void {
    const known = this.#values.get(name);
    if (known === undefined) this.#values.set(name, { count: 1, firstLine: line, type: formatColumnType(type) });
    else known.count++;
  }

  /** Forgets all: the body is read once more from its start. */
  clear(): void {
    this.#times = undefined;
    this.#values.clear();
    this.fractions.clear();
  }

  /** Adds those of a part of the body that has `linesBefore` lines in front of it. */
  addAll(misfits: readonly Misfit[], linesBefore: number): void {
    for (const { code, field = "", type = "", count, firstLine } of misfits) {
      const more = { count, firstLine: firstLine + linesBefore };
      if (code === "at_unreadable") this.#times = added(this.#times, more);
      else this.#values.set(field, { ...added(this.#values.get(field), more), type });
    }
  }

  /** Times first, then fields in the order in which they came up; undefined when everything fitted. */
  all(): Misfit[] | undefined {
    const values: Misfit[] = [];
    for (const [field, { type, count, firstLine }] of this.#values) {
      values.push({ code: "kept_in_props", field, type, count, firstLine });
    }
    values.sort((a, b) => a.firstLine - b.firstLine);
    if (this.#times === undefined) return values.length === 0 ? undefined : values;
    return [{ code: "at_unreadable", ...this.#times }, ...values];
  }
}

function added(known: Count | undefined, more: Count): Count {
  if (known === undefined) return more;
  return { count: known.count + more.count, firstLine: Math.min(known.firstLine, more.firstLine) };
}

/**
 * As many as a client is told of: the first `MAX_MISFIT_FIELDS` fields by name, and the values of all others as one
 * entry without a field, so that no count is lost.
 */
export function boundedMisfits(misfits: readonly Misfit[]): Misfit[] {
  const values = misfits.filter(({ code }) => code === "kept_in_props");
  const others = values.slice(MAX_MISFIT_FIELDS);
  const [first] = others;
  if (first === undefined) return [...misfits];
  const named = misfits.filter((misfit) => !others.includes(misfit));
  const count = others.reduce((sum, other) => sum + other.count, 0);
  return [...named, { code: first.code, count, firstLine: first.firstLine }];
}

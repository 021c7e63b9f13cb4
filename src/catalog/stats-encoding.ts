import type { ColumnStats } from "../format/types.ts";

/**
 * How an extent's column statistics are stored: one row, two JSON texts. `[1,2,5]` are the column ids; `[[0,3,0],
 * ["1",null,"a"],["9",null,"z"],[7,null,2]]` are the null counts, minima, maxima and distinct estimates in the order of
 * the ids, null where there is none. Pruning reads them without opening a file. What is missing at the end of the outer
 * array is not known: extents that were written before there were distinct estimates have three members.
 *
 * Where values were kept in `props` because they did not fit, a fifth member has how many, by position: `{"1":3}`. So
 * these texts, and no others, end in `}]`, by which they are found without being parsed.
 *
 * Why so: a commit of 128 extents with 60 columns each would otherwise be 7,680 row inserts. Measured, commit included:
 * 13 ms as rows, 3.8 ms as one text per extent. The caller's thread makes the texts, since passing the statistics to the
 * writer's thread as objects costs it as much (2–11 ms of structured clone against 1.5–4 ms of JSON plus 0.3 ms) and the
 * writer 4–11 ms more. JSON rather than a binary form: it carries NUL and unpaired surrogates as escapes, every driver
 * and every tool can read it, and parsing one takes microseconds. Ids rather than names: a column that is renamed keeps
 * its statistics, and one that takes an old name does not inherit them.
 */
export type EncodedStats = {
  /** JSON array of column names, as the sealer gave them. */
  names: string;
  values: string;
};

export function encodeStats(stats: readonly ColumnStats[]): EncodedStats {
  const names: string[] = [];
  const nulls: number[] = [];
  const minima: (string | null)[] = [];
  const maxima: (string | null)[] = [];
  const distincts: (number | null)[] = [];
  const misfits: MisfitsAt = {};
  for (const { name, nullCount, min, max, distinct, misfits: own = 0 } of stats) {
    if (own > 0) misfits[names.length] = own;
    names.push(name);
    nulls.push(nullCount);
    minima.push(min ?? null);
    maxima.push(max ?? null);
    distincts.push(distinct ?? null);
  }
  return { names: JSON.stringify(names), values: encodeValues([nulls, minima, maxima, distincts], misfits) };
}

type Lists = [nulls: number[], minima: (string | null)[], maxima: (string | null)[], distincts?: (number | null)[]];
type MisfitsAt = Record<number, number>;
type Values = Lists | [...Required<Lists>, misfits: MisfitsAt];

/** What the text of statistics with misfits ends in. */
export const MISFITS_END = "}]";

function encodeValues(lists: readonly unknown[], misfits: MisfitsAt): string {
  return JSON.stringify(Object.keys(misfits).length === 0 ? lists : [...lists, misfits]);
}

/** Adds the misfits of an extent to those of others, by column id. `misfits` is the fifth member of its statistics. */
export function addMisfits(to: Map<number, number>, ids: readonly number[], misfits: string): void {
  for (const [position, count] of Object.entries(JSON.parse(misfits) as MisfitsAt)) {
    const id = ids[Number(position)];
    if (id !== undefined) to.set(id, (to.get(id) ?? 0) + count);
  }
}

export function decodeStats(names: readonly string[], values: string): ColumnStats[] {
  return decodeStatsAt(names, [...names.keys()], values);
}

/** Of the columns at some positions only; `names` are theirs. */
export function decodeStatsAt(names: readonly string[], positions: readonly number[], values: string): ColumnStats[] {
  const [nulls, minima, maxima, distincts, misfits] = JSON.parse(values) as Values;
  return names.map((name, at) => {
    const i = positions[at] ?? 0;
    const stats: ColumnStats = { name, nullCount: nulls[i] ?? 0 };
    const min = minima[i];
    const max = maxima[i];
    const distinct = distincts?.[i];
    if (typeof min === "string") stats.min = min;
    if (typeof max === "string") stats.max = max;
    if (typeof distinct === "number") stats.distinct = distinct;
    const own = misfits?.[i];
    if (typeof own === "number") stats.misfits = own;
    return stats;
  });
}

/** The values at some positions only, in the same form. */
export function pickStats(values: string, positions: readonly number[]): string {
  const [nulls, minima, maxima, distincts, misfits = {}] = JSON.parse(values) as Values;
  const lists = [nulls, minima, maxima, distincts].flatMap((list) => (list === undefined ? [] : [list]));
  const picked: MisfitsAt = {};
  for (const [i, position] of positions.entries()) {
    const own = misfits[position];
    if (own !== undefined) picked[i] = own;
  }
  return encodeValues(
    lists.map((list) => positions.map((position) => list[position] ?? null)),
    picked,
  );
}

/** Parses arrays of names or ids; extents of one table mostly repeat the same text. */
export class ListParser<T> {
  #text = "[]";
  #list: readonly T[] = [];

  parse(text: string): readonly T[] {
    if (text !== this.#text) {
      this.#list = JSON.parse(text) as T[];
      this.#text = text;
    }
    return this.#list;
  }
}

import { levelOf, messageOf } from "../../base/log-fields.ts";
import type { RunningResult } from "../../results/running-result.ts";
import type { ResultColumn } from "../../results/result-store.ts";

/** The rows of a query, as panels draw them: each column as numbers (times in seconds) and as texts. */
export type Rows = {
  columns: readonly ResultColumn[];
  count: number;
  numbers: readonly (readonly (number | null)[])[];
  texts: readonly (readonly (string | null)[])[];
  isTruncated: boolean;
};

export async function rowsOf(result: RunningResult): Promise<Rows> {
  const { columns, rows, head } = result;
  const all = columns.map((_column, i) => i);
  const [numbers, window] = await Promise.all([result.numbers(all, rows), result.window(0, rows, all)]);
  return {
    columns,
    count: rows,
    numbers,
    texts: all.map((column) => window.map((row) => row[column] ?? null)),
    isTruncated: head?.isTruncated === true,
  };
}

export type Series = { title: string; values: (number | null | undefined)[] };
export type SeriesChart = { xs: number[]; series: Series[]; isTime: boolean; left: number };

/** More lines than these nobody tells apart. */
const MOST_SERIES = 24;

/**
 * Lines over one axis: the first time of each query, else its first number. A column of text makes a line for each of its
 * values. Undefined where no query has numbers to draw.
 */
export function seriesChart(all: readonly Rows[]): SeriesChart | undefined {
  const lines = new Map<string, Map<number, number | null>>();
  let isTime = false;
  for (const [query, rows] of all.entries()) {
    const x = axisOf(rows);
    if (x === undefined) continue;
    isTime ||= rows.columns[x]?.kind === "time";
    const ys = numberColumns(rows).filter((y) => y !== x);
    const labels = labelColumns(rows);
    for (let row = 0; row < rows.count; row++) {
      const at = rows.numbers[x]?.[row];
      if (at === null || at === undefined) continue;
      const label = labelAt(rows, labels, row);
      for (const y of ys) {
        const name = rows.columns[y]?.name ?? "";
        const title = label === "" ? name : ys.length > 1 ? `${label} ${name}` : label;
        const own = `${title}\n${all.length > 1 ? query : ""}`;
        const line = lines.get(own) ?? new Map<number, number | null>();
        lines.set(own, line);
        line.set(at, rows.numbers[y]?.[row] ?? null);
      }
    }
  }
  if (lines.size === 0) return undefined;
  const shown = [...lines].slice(0, MOST_SERIES);
  const xs = [...new Set(shown.flatMap(([, line]) => [...line.keys()]))].toSorted((a, b) => a - b);
  const series = shown.map(([own, line]) => ({
    title: own.slice(0, own.indexOf("\n")),
    values: xs.map((x) => line.get(x)),
  }));
  return { xs, series, isTime, left: lines.size - shown.length };
}

/** The chart from one end of a range to the other, also where there are no points. */
export function withEnds(chart: SeriesChart, from: number, to: number): SeriesChart {
  const { xs, series } = chart;
  const before = from < (xs[0] ?? Number.POSITIVE_INFINITY) ? [from] : [];
  const after = to > (xs.at(-1) ?? Number.NEGATIVE_INFINITY) ? [to] : [];
  const padded = series.map(({ title, values }) => ({
    title,
    values: [...before.map(() => null), ...values, ...after.map(() => null)],
  }));
  return { ...chart, xs: [...before, ...xs, ...after], series: padded };
}

function axisOf({ columns }: Rows): number | undefined {
  const time = columns.findIndex(({ kind }) => kind === "time");
  if (time !== -1) return time;
  const number = columns.findIndex(({ kind }) => kind === "number");
  return number === -1 ? undefined : number;
}

function numberColumns({ columns }: Rows): number[] {
  return columns.flatMap(({ kind }, i) => (kind === "number" ? [i] : []));
}

function labelColumns({ columns }: Rows): number[] {
  return columns.flatMap(({ kind }, i) => (kind === "text" || kind === "bool" ? [i] : []));
}

function labelAt({ texts }: Rows, labels: readonly number[], row: number): string {
  return labels.map((column) => texts[column]?.[row] ?? "NULL").join(", ");
}

export type Bar = { key: string; label: string; value: number };

/** A value for each row: the first number, under the texts and times beside it. */
export function barsOf({ columns, count, numbers, texts }: Rows, most: number): { bars: Bar[]; left: number } {
  const value = columns.findIndex(({ kind }) => kind === "number");
  const labels = columns.flatMap((_column, i) => (i === value ? [] : [i])).slice(0, 3);
  if (value === -1) return { bars: [], left: 0 };
  const bars: Bar[] = [];
  for (let row = 0; row < count; row++) {
    const number = numbers[value]?.[row];
    if (number === null || number === undefined) continue;
    const label = labels.map((column) => texts[column]?.[row] ?? "NULL").join(", ");
    bars.push({ key: String(row), label: label === "" ? (columns[value]?.name ?? "") : label, value: number });
  }
  return { bars: bars.slice(0, most), left: Math.max(0, bars.length - most) };
}

export type Slice = { label: string; value: number; share: number };

const MOST_SLICES = 9;

/** Parts of a whole, the largest first, the small ones together. Values that are not above zero are no parts. */
export function slicesOf(rows: Rows): { slices: Slice[]; left: number } {
  const { bars } = barsOf(rows, Number.POSITIVE_INFINITY);
  const parts = bars.filter(({ value }) => value > 0).toSorted((a, b) => b.value - a.value);
  const whole = parts.reduce((sum, { value }) => sum + value, 0);
  const large = parts.length > MOST_SLICES ? parts.slice(0, MOST_SLICES - 1) : parts;
  const small = parts.slice(large.length).reduce((sum, { value }) => sum + value, 0);
  const slices = large.map(({ label, value }) => ({ label, value, share: value / whole }));
  if (small > 0) slices.push({ label: `${parts.length - large.length} others`, value: small, share: small / whole });
  return { slices, left: bars.length - parts.length };
}

export const CALCULATIONS = ["last", "first", "sum", "mean", "least", "greatest"] as const;
export type Calculation = (typeof CALCULATIONS)[number];

export type Stat = { title: string; value: number | null; trend: readonly number[] };

/** One value of each column of numbers. Where the rows have times, what came before is its trend. */
export function statsOf(rows: Rows, calculation: Calculation): Stat[] {
  const hasTime = rows.columns.some(({ kind }) => kind === "time");
  return numberColumns(rows).map((column) => {
    const values = (rows.numbers[column] ?? []).filter((value) => value !== null);
    return {
      title: rows.columns[column]?.name ?? "",
      value: calculated(values, calculation),
      trend: hasTime && values.length > 1 ? values : [],
    };
  });
}

function calculated(values: readonly number[], calculation: Calculation): number | null {
  const [first] = values;
  if (first === undefined) return null;
  const sum = () => values.reduce((total, value) => total + value, 0);
  switch (calculation) {
    case "first":
      return first;
    case "last":
      return values.at(-1) ?? null;
    case "sum":
      return sum();
    case "mean":
      return sum() / values.length;
    // Not spread into a call, which has a limit of arguments.
    case "least":
      return values.reduce((a, b) => Math.min(a, b));
    case "greatest":
      return values.reduce((a, b) => Math.max(a, b));
  }
}

export type HeatMap = {
  xs: readonly string[];
  ys: readonly string[];
  /** By row, then by column. */
  cells: readonly (readonly (number | undefined)[])[];
  most: number;
  isCut: boolean;
};

const MOST_X = 120;
const MOST_Y = 40;

/** The sum of the last column of numbers for each pair of the two first others: `SELECT hour, level, count(*)`. */
export function heatMapOf({ columns, count, numbers, texts }: Rows): HeatMap | undefined {
  const value = columns.findLastIndex(({ kind }) => kind === "number");
  const [x, y] = columns.flatMap((_column, i) => (i === value ? [] : [i]));
  if (value === -1 || x === undefined || y === undefined) return undefined;
  const xs = distinct(texts[x] ?? []);
  const ys = distinct(texts[y] ?? []);
  const [xIndex, yIndex] = [indexOf(xs.slice(0, MOST_X)), indexOf(ys.slice(0, MOST_Y))];
  const cells = Array.from({ length: yIndex.size }, () => Array.from<number | undefined>({ length: xIndex.size }));
  let most = 0;
  for (let row = 0; row < count; row++) {
    const number = numbers[value]?.[row];
    const [column, line] = [xIndex.get(texts[x]?.[row] ?? "NULL"), yIndex.get(texts[y]?.[row] ?? "NULL")];
    const cell = line === undefined ? undefined : cells[line];
    if (number === null || number === undefined || column === undefined || cell === undefined) continue;
    cell[column] = (cell[column] ?? 0) + number;
    most = Math.max(most, cell[column]);
  }
  const isCut = xs.length > MOST_X || ys.length > MOST_Y;
  return { xs: [...xIndex.keys()], ys: [...yIndex.keys()], cells, most, isCut };
}

function distinct(texts: readonly (string | null)[]): string[] {
  return [...new Set(texts.map((text) => text ?? "NULL"))];
}

function indexOf(texts: readonly string[]): Map<string, number> {
  return new Map(texts.map((text, i) => [text, i]));
}

export type LogLine = { key: string; at: string; level: string; message: string; fields: readonly [string, string][] };

/** Rows as lines of a log: a time, a level, a message, and everything else behind. */
export function logLinesOf({ columns, count, texts }: Rows, most: number): LogLine[] {
  const at = columns.findIndex(({ kind }) => kind === "time");
  const levels = levelOf(columns);
  const level = columns.findIndex((column) => column === levels);
  const messages = messageOf(columns) ?? columns.find((column) => column.kind === "text" && column !== levels);
  const message = columns.findIndex((column) => column === messages);
  const others = columns.flatMap((_column, i) => (i === at || i === level || i === message ? [] : [i]));
  return Array.from({ length: Math.min(count, most) }, (_line, row) => ({
    key: String(row),
    at: texts[at]?.[row] ?? "",
    level: texts[level]?.[row] ?? "",
    message: texts[message]?.[row] ?? "",
    fields: others.flatMap((column): [string, string][] => {
      const text = texts[column]?.[row];
      return text === null || text === undefined ? [] : [[columns[column]?.name ?? "", text]];
    }),
  }));
}

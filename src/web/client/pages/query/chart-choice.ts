import type { ResultColumn } from "../../results/result-store.ts";

export const CHART_KINDS = ["lines", "areas", "bars"] as const;
export type ChartKind = (typeof CHART_KINDS)[number];

/** What a chart draws: columns by their numbers. */
export type ChartChoice = { kind: ChartKind; x: number; ys: readonly number[] };

/** What `render` of a KQL query asks for, as the server writes it: `{kind, properties}`, percent-encoded. */
type Render = { kind?: string; properties?: { xcolumn?: string; ycolumns?: unknown } };

const KINDS: Readonly<Record<string, ChartKind>> = {
  timechart: "lines",
  linechart: "lines",
  scatterchart: "lines",
  areachart: "areas",
  stackedareachart: "areas",
  barchart: "bars",
  columnchart: "bars",
};

/** Undefined where there are no numbers to draw. */
export function chartOf(columns: readonly ResultColumn[], render: string | undefined): ChartChoice | undefined {
  const asked = renderOf(render);
  const named = (name: unknown): number => columns.findIndex((column) => column.name === name);
  const numbers = columns.flatMap(({ kind }, i) => (kind === "number" ? [i] : []));
  const time = columns.findIndex(({ kind }) => kind === "time");
  const wantedX = named(asked?.properties?.xcolumn);
  const x = wantedX !== -1 ? wantedX : time !== -1 ? time : (numbers[0] ?? -1);
  const { ycolumns } = asked?.properties ?? {};
  const wantedYs = (Array.isArray(ycolumns) ? ycolumns : [ycolumns]).map(named).filter((i) => i !== -1);
  const ys = (wantedYs.length > 0 ? wantedYs : numbers.filter((i) => i !== x)).slice(0, MOST_SERIES);
  if (x === -1 || ys.length === 0) return undefined;
  return { kind: KINDS[asked?.kind ?? ""] ?? "lines", x, ys };
}

const MOST_SERIES = 8;

export function isRendered(render: string | undefined): boolean {
  return KINDS[renderOf(render)?.kind ?? ""] !== undefined;
}

function renderOf(render: string | undefined): Render | undefined {
  if (render === undefined) return undefined;
  try {
    return JSON.parse(decodeURIComponent(render)) as Render;
  } catch {
    return undefined;
  }
}

/** Points by x, which a chart wants in order; those without an x are left out. */
export function inOrder(numbers: readonly (readonly (number | null)[])[]): [number[], ...(number | null)[][]] {
  const [xs = [], ...ys] = numbers;
  const order = xs.flatMap((x, i) => (x === null ? [] : [i])).toSorted((a, b) => (xs[a] ?? 0) - (xs[b] ?? 0));
  return [order.map((i) => xs[i] ?? 0), ...ys.map((values) => order.map((i) => values[i] ?? null))];
}

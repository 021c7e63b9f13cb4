import type { Summary } from "../suite/result.ts";
import { amount } from "./figures.ts";
import { html, type Html } from "./html.ts";

const WIDTH = 640;
const NAMES = 210;
const VALUES = 150;
const ROW = 24;
const TOP = 26;

/** How many times better ours is: a ratio of times is turned round. */
type Advantage = { name: string; value: number; low: number; high: number };

/**
 * A dot and an interval for each ratio, on an axis of logarithms; right of the line at 1 ours is better. The dot is full
 * where the whole interval is on one side (a square where that is the peer's), and hollow where it is not.
 */
export function ratioChart(benchmark: string, summary: readonly Summary[]): Html | undefined {
  const rows = summary.flatMap(advantageOf);
  if (rows.length === 0) return undefined;
  const x = axis(rows);
  const height = TOP + rows.length * ROW + 22;
  const bottom = TOP + rows.length * ROW;
  const texts = rows.map(({ name, ...row }) => `${name} ${textOf(row)}`);
  return html`<svg
    class="chart"
    viewBox="0 0 ${WIDTH} ${height}"
    role="img"
    aria-label="${benchmark}: ${texts.join("; ")}"
  >
    <text class="hint" x="${x(1) - 6}" y="14" text-anchor="end">← theirs is better</text>
    <text class="hint" x="${x(1) + 6}" y="14">ours is better →</text>
    <line class="one" x1="${x(1)}" x2="${x(1)}" y1="${TOP - 6}" y2="${bottom}" />
    <text class="hint" x="${x(1)}" y="${bottom + 16}" text-anchor="middle">1×</text>
    ${rows.map((row, i) => rowOf(row, x, TOP + i * ROW + ROW / 2))}
  </svg>`;
}

function advantageOf({ side, measure, better, ratio }: Summary): Advantage[] {
  if (ratio === null || ratio.median <= 0 || ratio.interval.low <= 0) return [];
  const { median, interval } = ratio;
  const name = `${measure}, ${side}`;
  if (better === "more") return [{ name, value: median, low: interval.low, high: interval.high }];
  return [{ name, value: 1 / median, low: 1 / interval.high, high: 1 / interval.low }];
}

/** Positions of ratios, as far to the left of 1 as to the right, with room at both ends. */
function axis(rows: readonly Advantage[]): (ratio: number) => number {
  const furthest = Math.max(...rows.flatMap(({ low, high }) => [Math.abs(Math.log(low)), Math.abs(Math.log(high))]));
  const reach = Math.max(furthest, Math.log(1.25)) * 1.08;
  const [from, to] = [NAMES, WIDTH - VALUES];
  const middle = (from + to) / 2;
  return (ratio) => rounded(middle + (Math.log(ratio) / reach) * ((to - from) / 2));
}

function rowOf(row: Advantage, x: (ratio: number) => number, y: number): Html {
  return html`<text x="${NAMES - 10}" y="${y + 4}" text-anchor="end">${row.name}</text>
    <line class="interval" x1="${x(row.low)}" x2="${x(row.high)}" y1="${y}" y2="${y}" />
    ${dotOf(row, x(row.value), y)}
    <text x="${WIDTH - VALUES + 10}" y="${y + 4}">${textOf(row)}</text>`;
}

function dotOf({ low, high }: Advantage, x: number, y: number): Html {
  if (high < 1) return html`<rect class="worse" x="${x - 5}" y="${y - 5}" width="10" height="10" />`;
  return html`<circle class="${low > 1 ? "better" : "either"}" cx="${x}" cy="${y}" r="5" />`;
}

function textOf({ value, low, high }: Omit<Advantage, "name">): string {
  return `${amount(value)}× (${amount(low)}–${amount(high)})`;
}

function rounded(position: number): number {
  return Math.round(position * 10) / 10;
}

import { amount } from "./figures.ts";
import type { Growth } from "./growth.ts";
import { html, type Html } from "./html.ts";

const WIDTH = 640;
const HEIGHT = 340;
const LEFT = 80;
const RIGHT = 150;
const TOP = 16;
const BOTTOM = 48;

type Series = Growth["series"][number];
type Scale = { at: (value: number) => number; ticks: readonly number[] };

/** One chart for each unit, in the order in which they first come. */
export function growthCharts(growth: Growth): Html {
  const byUnit = Map.groupBy(growth.series, ({ unit }) => unit);
  return html`${[...byUnit].map(([unit, series]) => growthChart(growth, unit, series))}`;
}

/** Curves on two axes of logarithms. Series differ by their dashes and marks, and each is named at its end. */
function growthChart({ name, x }: Growth, unit: string, series: readonly Series[]): Html {
  const points = series.flatMap((one) => one.points);
  const across = scaleOf(
    points.map((point) => point.x),
    [LEFT, WIDTH - RIGHT],
  );
  const up = scaleOf(
    points.flatMap((point) => [point.y, point.interval.low, point.interval.high]),
    [HEIGHT - BOTTOM, TOP],
  );
  return html`<svg
    class="chart"
    viewBox="0 0 ${WIDTH} ${HEIGHT}"
    role="img"
    aria-label="${name}: ${series.map((one) => one.name).join(", ")} by ${x.unit}"
  >
    ${across.ticks.map(
      (tick) =>
        html`<line class="grid" x1="${across.at(tick)}" x2="${across.at(tick)}" y1="${TOP}" y2="${HEIGHT - BOTTOM}" />
          <text x="${across.at(tick)}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${amount(tick)}</text>`,
    )}
    ${up.ticks.map(
      (tick) =>
        html`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${up.at(tick)}" y2="${up.at(tick)}" />
          <text x="${LEFT - 8}" y="${up.at(tick) + 4}" text-anchor="end">${amount(tick)}</text>`,
    )}
    <text class="hint" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 10}" text-anchor="middle">${x.unit}</text>
    <text class="hint" x="${LEFT}" y="${TOP - 4}">${unit}</text>
    ${series.map((one, i) => curveOf(one, i, across, up))}
  </svg>`;
}

const MARKS = ["●", "■", "▲", "◆", "○", "□"];
const DASHES = ["none", "7 4", "2 3", "9 3 2 3"];

function curveOf({ name, points, exponent }: Series, number: number, across: Scale, up: Scale): Html {
  const sorted = points.toSorted((a, b) => a.x - b.x);
  const last = sorted.at(-1);
  const path = sorted.map((point) => `${across.at(point.x)},${up.at(point.y)}`).join(" ");
  const mark = MARKS[number % MARKS.length] ?? "●";
  return html`<polyline class="curve" stroke-dasharray="${DASHES[number % DASHES.length]}" points="${path}" />
    ${sorted.map(
      (point) =>
        html`<line
            class="interval"
            x1="${across.at(point.x)}"
            x2="${across.at(point.x)}"
            y1="${up.at(point.interval.low)}"
            y2="${up.at(point.interval.high)}"
          /><text class="mark" x="${across.at(point.x)}" y="${up.at(point.y) + 4}" text-anchor="middle">${mark}</text>`,
    )}
    <text x="${WIDTH - RIGHT + 12}" y="${up.at(last?.y ?? 1) + 4}">${mark} ${name}, x^${exponent.toFixed(2)}</text>`;
}

/** Positions by logarithm. Ticks are powers of ten, with 2 and 5 of each where there are few of them. */
function scaleOf(values: readonly number[], [from, to]: readonly [number, number]): Scale {
  const low = Math.log10(Math.min(...values));
  const high = Math.max(Math.log10(Math.max(...values)), low + 0.1);
  const at = (value: number) => Math.round((from + ((Math.log10(value) - low) / (high - low)) * (to - from)) * 10) / 10;
  const steps = high - low > 2 ? [1] : [1, 2, 5];
  const decades = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, i) => 10 ** (Math.floor(low) + i));
  const inside = decades
    .flatMap((decade) => steps.map((step) => step * decade))
    .filter((tick) => Math.log10(tick) >= low - 1e-9 && Math.log10(tick) <= high + 1e-9);
  return { at, ticks: inside.length > 1 ? inside : [Math.min(...values), Math.max(...values)] };
}

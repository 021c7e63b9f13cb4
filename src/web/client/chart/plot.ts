import uPlot from "uplot";
import { formatMoment } from "../time/time-range.ts";
import "uplot/dist/uPlot.min.css";

/**
 * The values of x, which grow, then those of each series: null is a gap, undefined an x that is only another series', which
 * lines pass over.
 */
export type ChartData = readonly [readonly number[], ...(readonly (number | null | undefined)[])[]];

export type ChartSeries = {
  title: string;
  /** A CSS colour or property (`var(--series-1)`); by their order unless given. */
  colour?: string;
};

export type ChartSettings = {
  parent: HTMLElement;
  data: ChartData;
  series: readonly ChartSeries[];
  look?: "lines" | "areas" | "bars";
  /** Whether x is a time, in seconds since 1970. */
  isTime?: boolean;
  /** In which zone times are written; the browser's unless given. */
  zone?: "utc" | "browser";
  /** Whether each series stands on those after it, so that the first one's top is the sum. */
  isStacked?: boolean;
  /** How a value of y is written. */
  unit?: (value: number) => string;
  heightPx?: number;
  onRange?: (from: number, to: number) => void;
};

export type ChartHandle = {
  setData(data: ChartData): void;
  resize(widthPx: number): void;
  destroy(): void;
};

const SERIES_COLOURS = 8;

const DAY_SECONDS = 86_400;
/**
 * How times stand on the axis, by the least distance of two in seconds: each as the first text, with another line below
 * the first of all, of a year, of a day and of a minute. Written as everywhere on the pages, in 24 hours.
 */
const TIME_TEXTS = [
  [365 * DAY_SECONDS, "{YYYY}", null, null, null, null, null, null, 1],
  [28 * DAY_SECONDS, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
  [DAY_SECONDS, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [0.001, "{ss}.{fff}", "\n{YYYY}-{MM}-{DD} {HH}:{mm}", null, "\n{MM}-{DD} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
] satisfies uPlot.Axis.Values;

const NUMBER = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });
/** Room for `23:59:59`, and what keeps it from the next. */
const TIME_SPACE_PX = 64;

export function createChart(settings: ChartSettings): ChartHandle {
  const { parent, data, series, look = "lines", isTime = true, heightPx = 180, onRange } = settings;
  const unit = settings.unit ?? ((value: number) => NUMBER.format(value));
  const { zone = "browser", isStacked = false } = settings;
  const timeText = (seconds: number) => formatMoment(seconds * 1_000, zone);
  // What series hold themselves, for the legend.
  let own = data;
  const drawn = (next: ChartData) => aligned(isStacked ? stacked(next) : next);
  const styles = getComputedStyle(parent);
  // A canvas has no properties of CSS: their values are read when it is made.
  const colour = (name: string) =>
    name.replace(/var\((--[\w-]+)\)/g, (_all, property: string) => styles.getPropertyValue(property).trim());
  const axis: uPlot.Axis = {
    stroke: colour("var(--muted)"),
    font: `11px ${styles.fontFamily}`,
    grid: { stroke: colour("var(--grid)"), width: 1 },
    ticks: { stroke: colour("var(--grid)"), width: 1, size: 4 },
  };
  const chart = new uPlot(
    {
      width: Math.max(parent.clientWidth, 50),
      height: heightPx,
      legend: { show: series.length > 1, live: true },
      cursor: { y: false, drag: { x: onRange !== undefined, y: false, setScale: false } },
      scales: {
        x: {
          time: isTime,
          // Bars stand on the middle of what they are of: half of the first and of the last would be cut.
          ...(look === "bars" && {
            range: (_chart: uPlot, min: number, max: number) => widenedByHalf(own[0], min, max),
          }),
        },
        y: { range: (_chart, min, max) => [Math.min(0, min), max <= 0 ? 1 : max * 1.08] },
      },
      axes: [
        isTime
          ? { ...axis, space: TIME_SPACE_PX, values: TIME_TEXTS }
          : { ...axis, values: (_chart, ticks) => ticks.map((tick) => NUMBER.format(tick)) },
        { ...axis, size: 56, values: (_chart, ticks) => ticks.map(unit) },
      ],
      ...(zone === "utc" && { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC") }),
      series: [
        {
          ...(isTime && zone === "utc" && { label: "Time (UTC)" }),
          value: (_chart: uPlot, x: number | null) => (x === null ? "" : isTime ? timeText(x) : NUMBER.format(x)),
        },
        ...series.map(({ title, colour: chosen }, index): uPlot.Series => {
          const made = seriesOf(title, colour(chosen ?? `var(--series-${(index % SERIES_COLOURS) + 1})`), look);
          made.value = (_chart: uPlot, _drawn: number | null, at: number, row: number | null) =>
            textOf(row === null ? null : own[at]?.[row], unit);
          return made;
        }),
      ],
      hooks: {
        setSelect: [
          (self) => {
            const { left, width } = self.select;
            if (width < 3 || onRange === undefined) return;
            onRange(self.posToVal(left, "x"), self.posToVal(left + width, "x"));
            self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    },
    drawn(data),
    parent,
  );
  return {
    setData: (next) => {
      own = next;
      chart.setData(drawn(next));
    },
    resize: (widthPx) => chart.setSize({ width: Math.max(widthPx, 50), height: heightPx }),
    destroy: () => chart.destroy(),
  };
}

/** uPlot's own type cannot say that it changes nothing. */
function aligned(data: ChartData): uPlot.AlignedData {
  return data as unknown as uPlot.AlignedData;
}

function stacked([x, ...series]: ChartData): ChartData {
  let above: readonly number[] = x.map(() => 0);
  const sums = series.toReversed().map((values) => (above = above.map((sum, i) => sum + (values[i] ?? 0))));
  return [x, ...sums.toReversed()];
}

function widenedByHalf(x: readonly number[], min: number, max: number): [number, number] {
  const half = x.length > 1 ? ((x[1] ?? 0) - (x[0] ?? 0)) / 2 : 0.5;
  return [min - half, max + half];
}

function textOf(value: number | null | undefined, unit: (value: number) => string): string {
  return value === null || value === undefined ? "" : unit(value);
}

function seriesOf(title: string, colour: string, look: "lines" | "areas" | "bars"): uPlot.Series {
  const series: uPlot.Series = { label: title, stroke: colour, width: 1.5, points: { show: false } };
  if (look === "areas") series.fill = `color-mix(in srgb, ${colour} 18%, transparent)`;
  if (look !== "bars") return series;
  const paths = uPlot.paths.bars?.({ size: [0.85, 60], radius: 0.1 });
  return { ...series, fill: colour, width: 0, ...(paths !== undefined && { paths }) };
}

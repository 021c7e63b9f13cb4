import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatCount, formatShortCount } from "../../base/format.ts";
import { severityOf } from "../../base/log-fields.ts";
import { Chart } from "../../chart/chart.tsx";
import type { ChartData, ChartSeries } from "../../chart/plot.ts";
import { ErrorBox } from "../../components/error-box.tsx";
import { Select } from "../../components/field.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { offsetMs, type Zone } from "../../time/calendar.ts";
import { formatMoment, type Moments } from "../../time/time-range.ts";
import type { HistogramCounts, ValueCount } from "./counts.ts";
import { isDiscrete, levelColumn } from "./fields.ts";
import { HistogramTable, type BarSeries } from "./histogram-table.tsx";
import type { Scope } from "./queries.ts";
import { countedAs, SampleNote } from "./sample-note.tsx";
import type { FoundCounts } from "./use-counts.ts";

/** What the address says where rows are not told apart. */
export const NO_LEVEL = "-";

type HistogramProps = {
  scope: Scope;
  counts: FoundCounts;
  zone: Zone;
  /** As in the address: "" for the column that looks like a level. */
  choice: string;
  onBy: (choice: string) => void;
  onRange: (moments: Moments) => void;
};

const MOST_CHOICES = 100;

/** How many rows when; a part that is drawn over becomes the range. */
export function Histogram({ scope, counts, zone, choice, onBy, onRange }: HistogramProps): JSX.Element {
  const { histogram, rows, sample, error, countAgain } = counts;
  const drawn = useMemo(() => (histogram === undefined ? undefined : chartOf(histogram)), [histogram]);
  const discrete = scope.columns.filter(({ type }) => isDiscrete(type)).slice(0, MOST_CHOICES);
  const usual = levelColumn(scope.columns);
  const of = sample === undefined ? "Rows" : "Rows of the sample";
  return (
    <section class="explore-histogram" aria-label="Rows over time">
      <div class="explore-facts">
        {rows === undefined ? (
          <span>{error === null ? "Counting…" : ""}</span>
        ) : (
          <span>
            <strong>{countedAs(rows, "row", sample)}</strong> from {formatMoment(scope.moments.fromMs, zone)} to{" "}
            {formatMoment(scope.moments.toMs, zone)}
            {histogram !== undefined && `, ${stepNote(histogram, zone)}`}
          </span>
        )}
        <Select
          label="Split by"
          isLabelHidden
          value={choice}
          options={[
            { value: "", title: usual === undefined ? "All rows together" : `By ${usual}` },
            ...(usual === undefined ? [] : [{ value: NO_LEVEL, title: "All rows together" }]),
            ...discrete.filter(({ name }) => name !== usual).map(({ name }) => ({ value: name, title: `By ${name}` })),
          ]}
          onChange={onBy}
        />
      </div>
      {sample !== undefined && <SampleNote sample={sample} />}
      {error !== null && <ErrorBox title="The rows could not be counted." error={error} onRetry={countAgain} />}
      {drawn === undefined && error === null && <Spinner label="Counting the rows…" />}
      {histogram !== undefined && drawn !== undefined && (
        <>
          <Chart
            label={`${of} per ${stepTitle(histogram.step_ns)}: ${drawn.series.map(({ title }, i) => `${title} ${formatCount(drawn.sums[i] ?? 0)}`).join(", ")}`}
            data={drawn.data}
            series={drawn.series}
            look="bars"
            isStacked
            zone={zone}
            unit={formatShortCount}
            heightPx={150}
            onRange={(from, to) => onRange({ fromMs: from * 1_000, toMs: Math.max(to * 1_000, from * 1_000 + 1) })}
          />
          <HistogramTable
            histogram={histogram}
            series={seriesOf(histogram)}
            moments={scope.moments}
            sample={sample}
            zone={zone}
            onRange={onRange}
          />
        </>
      )}
    </section>
  );
}

/** The values that were told apart, the most frequent first, and the rest of each bar. Exported for tests. */
export function seriesOf({ by, buckets }: HistogramCounts): BarSeries[] {
  if (by === null || by.series.length === 0) {
    return [
      series(
        "rows",
        "rows",
        buckets.map(({ rows }) => rows),
      ),
    ];
  }
  const named = by.series.map((one, i) =>
    series(
      `value ${i}`,
      valueTitle(one),
      buckets.map((bucket) => bucket.by?.[i] ?? 0),
    ),
  );
  const rest = buckets.map((bucket) => bucket.rows - (bucket.by ?? []).reduce((sum, rows) => sum + rows, 0));
  const others = series(OTHERS, "others", rest);
  return others.sum === 0 ? named : [...named, others];
}

const OTHERS = "others";

function series(key: string, title: string, values: number[]): BarSeries {
  return { key, title, values, sum: values.reduce((sum, rows) => sum + rows, 0) };
}

const TITLE_CHARS = 100;

function valueTitle({ value }: ValueCount): string {
  if (value === null) return "no value";
  return value === "" ? "empty" : value.slice(0, TITLE_CHARS);
}

type Drawn = { data: ChartData; series: ChartSeries[]; sums: number[] };

/** Exported for tests. The most frequent value stands at the bottom. */
export function chartOf(histogram: HistogramCounts): Drawn {
  const first = secondsOf(histogram.buckets[0]?.from ?? "");
  const step = histogram.step_ns / 1e9;
  const x = histogram.buckets.map((_, i) => first + (i + 0.5) * step);
  const drawn = seriesOf(histogram).toReversed();
  const colours = coloursOf(drawn.map(({ key, title }) => (key === OTHERS ? undefined : title)));
  return {
    data: [x, ...drawn.map(({ values }) => values)],
    series: drawn.map(({ title }, i) => ({ title, colour: colours[i] ?? "var(--series-8)" })),
    sums: drawn.map(({ sum }) => sum),
  };
}

/** Where a time is on the axis: to a fraction of a microsecond, which is less than a pixel of any range. */
function secondsOf(time: string): number {
  const [whole = "", fraction = ""] = time.replace(/Z$/, "").split(".");
  return Date.parse(`${whole}Z`) / 1_000 + Number(`0.${fraction}`);
}

const OWN_COLOURS = { bad: "var(--bad)", warn: "var(--series-7)", faint: "var(--series-8)" } as const;
const REST_COLOURS = [1, 3, 5, 6, 2, 4].map((number) => `var(--series-${number})`);

/** Errors are red and warnings yellow wherever they stand, the first of each; the others take what is left. */
function coloursOf(titles: readonly (string | undefined)[]): string[] {
  const used = new Set<string>();
  return titles.map((title) => {
    const severity = title === undefined ? "faint" : severityOf(title);
    const own = severity === "good" ? undefined : OWN_COLOURS[severity];
    const colour =
      own !== undefined && !used.has(own) ? own : (REST_COLOURS.find((one) => !used.has(one)) ?? "var(--series-8)");
    used.add(colour);
    return colour;
  });
}

/** How long a bar is, and where it begins if that is not where the zone's hours and days do. */
function stepNote({ step_ns: stepNs, buckets }: HistogramCounts, zone: Zone): string {
  const offset = offsetMs(Date.parse(buckets[0]?.from ?? ""), zone);
  const note = `one bar per ${stepTitle(stepNs)}`;
  return (offset * 1e6) % stepNs === 0 ? note : `${note} of UTC`;
}

/** Exported for tests. */
export function stepTitle(stepNs: number): string {
  const [size, unit] = UNITS.find(([ns]) => stepNs % ns === 0) ?? [1, "nanosecond"];
  const count = stepNs / size;
  return count === 1 ? unit : `${formatCount(count)} ${unit}s`;
}

const UNITS = [
  [604_800e9, "week"],
  [86_400e9, "day"],
  [3_600e9, "hour"],
  [60e9, "minute"],
  [1e9, "second"],
  [1e6, "millisecond"],
  [1e3, "microsecond"],
] as const;

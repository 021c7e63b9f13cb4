import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatCount, formatShortCount, plural } from "../../base/format.ts";
import { severityOf } from "../../base/log-fields.ts";
import { useQuery } from "../../base/use-query.ts";
import { Chart } from "../../chart/chart.tsx";
import type { ChartData, ChartSeries } from "../../chart/plot.ts";
import { ErrorBox } from "../../components/error-box.tsx";
import { Select } from "../../components/field.tsx";
import { Spinner } from "../../components/spinner.tsx";
import type { Zone } from "../../time/calendar.ts";
import { formatMoment, type Moments } from "../../time/time-range.ts";
import { readHistogram, type HistogramCount } from "./explore-api.ts";
import { isDiscrete, levelColumn } from "./fields.ts";
import { bucketsOf, type Buckets, type Scope } from "./queries.ts";
import { scopeKey } from "./use-rows.ts";

/** What the address says where rows are not told apart. */
export const NO_LEVEL = "-";

type HistogramProps = {
  database: string;
  scope: Scope;
  zone: Zone;
  by: string | undefined;
  /** As in the address: "" for the column that looks like a level. */
  choice: string;
  onBy: (choice: string) => void;
  onRange: (moments: Moments) => void;
};

/** How many rows when; a part that is drawn over becomes the range. */
export function Histogram({ database, scope, zone, by, choice, onBy, onRange }: HistogramProps): JSX.Element {
  const buckets = useMemo(() => bucketsOf(scope.moments, zone), [scope.moments, zone]);
  const counts = useQuery({
    key: ["explore", "histogram", ...scopeKey(database, scope), by, buckets.stepMs, buckets.shiftMs],
    read: (signal) => readHistogram(database, scope, by, buckets, signal),
    staleMs: Number.POSITIVE_INFINITY,
  });
  const drawn = useMemo(() => (counts.data === undefined ? undefined : chartOf(counts.data, buckets)), [counts.data]);
  const discrete = scope.columns.filter(({ type }) => isDiscrete(type)).slice(0, MOST_CHOICES);
  const usual = levelColumn(scope.columns);
  return (
    <section class="explore-histogram" aria-label="Rows over time">
      <div class="explore-facts">
        {drawn === undefined ? (
          <span>{counts.error === null ? "Counting…" : ""}</span>
        ) : (
          <span>
            <strong>{plural(drawn.total, "row")}</strong> from {formatMoment(scope.moments.fromMs, zone)} to{" "}
            {formatMoment(scope.moments.toMs, zone)}
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
      {counts.error !== null && (
        <ErrorBox title="The rows could not be counted." error={counts.error} onRetry={() => void counts.refetch()} />
      )}
      {drawn === undefined && counts.error === null && <Spinner label="Counting the rows…" />}
      {drawn !== undefined && (
        <Chart
          label={`Rows for each ${stepTitle(buckets.stepMs)}: ${drawn.series.map(({ title }, i) => `${title} ${formatCount(drawn.sums[i] ?? 0)}`).join(", ")}`}
          data={drawn.data}
          series={drawn.series}
          look="bars"
          isStacked
          zone={zone}
          unit={formatShortCount}
          heightPx={150}
          onRange={(from, to) => onRange({ fromMs: from * 1_000, toMs: Math.max(to * 1_000, from * 1_000 + 1) })}
        />
      )}
    </section>
  );
}

const MOST_CHOICES = 100;

type Drawn = { data: ChartData; series: ChartSeries[]; sums: number[]; total: number };

/** Exported for tests. The most frequent value stands at the bottom. */
export function chartOf(counts: readonly HistogramCount[], buckets: Buckets): Drawn {
  const { stepMs, shiftMs, first, last } = buckets;
  const x = Array.from({ length: last - first + 1 }, (_, i) => ((first + i + 0.5) * stepMs + shiftMs) / 1_000);
  const bySeries = new Map<string, { title: string; values: number[]; sum: number; isOther: boolean }>();
  for (const { bucket, value, is_other: isOther = false, n } of counts) {
    const title = isOther ? "others" : value === undefined ? "rows" : (value ?? "no value");
    const key = `${isOther}${value ?? null}`;
    const one = bySeries.get(key) ?? { title, values: x.map(() => 0), sum: 0, isOther };
    bySeries.set(key, one);
    one.values[bucket - first] = (one.values[bucket - first] ?? 0) + n;
    one.sum += n;
  }
  if (bySeries.size === 0) bySeries.set("", { title: "rows", values: x.map(() => 0), sum: 0, isOther: false });
  const all = [...bySeries.values()].sort((a, b) => Number(b.isOther) - Number(a.isOther) || a.sum - b.sum);
  const colours = coloursOf(all.map(({ title, isOther }) => (isOther ? undefined : title)));
  return {
    data: [x, ...all.map(({ values }) => values)],
    series: all.map(({ title }, i) => ({ title, colour: colours[i] ?? "var(--series-8)" })),
    sums: all.map(({ sum }) => sum),
    total: all.reduce((total, { sum }) => total + sum, 0),
  };
}

const OWN_COLOURS = { bad: "var(--bad)", warn: "var(--series-7)", faint: "var(--series-8)" } as const;
const OTHERS = [1, 3, 5, 6, 2, 4].map((number) => `var(--series-${number})`);

/** Errors are red and warnings yellow wherever they stand, the first of each; the others take what is left. */
function coloursOf(titles: readonly (string | undefined)[]): string[] {
  const used = new Set<string>();
  return titles.map((title) => {
    const severity = title === undefined ? "faint" : severityOf(title);
    const own = severity === "good" ? undefined : OWN_COLOURS[severity];
    const colour =
      own !== undefined && !used.has(own) ? own : (OTHERS.find((one) => !used.has(one)) ?? "var(--series-8)");
    used.add(colour);
    return colour;
  });
}

function stepTitle(stepMs: number): string {
  const [size, unit] = UNITS.find(([ms]) => stepMs >= ms && stepMs % ms === 0) ?? [1, "ms"];
  const count = stepMs / size;
  return count === 1 ? unit : `${count} ${unit === "ms" ? unit : `${unit}s`}`;
}

const UNITS = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
] as const;

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { formatCount, formatShortCount } from "../../base/format.ts";
import { Chart } from "../../chart/chart.tsx";
import type { ChartData } from "../../chart/plot.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Select } from "../../components/field.tsx";
import { Spinner } from "../../components/spinner.tsx";
import type { RunningResult } from "../../results/running-result.ts";
import { chartOf, CHART_KINDS, inOrder, type ChartKind } from "./chart-choice.ts";

/** Points of each series at most: there are no more pixels. */
const MOST_POINTS = 50_000;

/** Numbers of a result over its first time, or over another column. */
export function ResultChart({ result }: { result: RunningResult }): JSX.Element {
  const { columns, head, version } = result;
  const first = useMemo(() => chartOf(columns, head?.render), [columns, head]);
  const [kind, setKind] = useState<ChartKind | undefined>();
  const [x, setX] = useState<number | undefined>();
  const [data, setData] = useState<ChartData | undefined>();
  const xColumn = x ?? first?.x;
  const ys = useMemo(() => first?.ys.filter((y) => y !== xColumn) ?? [], [first, xColumn]);
  useEffect(() => {
    if (xColumn === undefined || ys.length === 0) return;
    let isGone = false;
    void result.numbers([xColumn, ...ys], MOST_POINTS).then((numbers) => {
      if (!isGone) setData(inOrder(numbers));
    });
    return () => void (isGone = true);
  }, [result, version, xColumn, ys]);
  const series = useMemo(() => ys.map((y) => ({ title: columns[y]?.name ?? "" })), [columns, ys]);
  if (first === undefined || xColumn === undefined) {
    return (
      <EmptyState icon="info" title="Nothing to draw">
        <p>A chart needs a column of numbers, and one of times or numbers to draw it over.</p>
      </EmptyState>
    );
  }
  const xs = columns.flatMap(({ name, kind: of }, i) =>
    of === "number" || of === "time" ? [{ value: String(i), title: name }] : [],
  );
  return (
    <div class="result-chart">
      <div class="chart-choices">
        <Select
          label="Chart"
          value={kind ?? first.kind}
          options={CHART_KINDS.map((one) => ({ value: one, title: one }))}
          onChange={setKind}
        />
        <Select label="Over" value={String(xColumn)} options={xs} onChange={(value) => setX(Number(value))} />
        {result.rows > MOST_POINTS && <p class="chart-note">The first {formatCount(MOST_POINTS)} rows.</p>}
      </div>
      {data === undefined ? (
        <Spinner label="Reading the numbers…" />
      ) : (
        <Chart
          label={`${series.map(({ title }) => title).join(", ")} over ${columns[xColumn]?.name ?? ""}`}
          data={data}
          series={series}
          look={kind ?? first.kind}
          isTime={columns[xColumn]?.kind === "time"}
          zone="utc"
          unit={formatShortCount}
          heightPx={320}
        />
      )}
    </div>
  );
}

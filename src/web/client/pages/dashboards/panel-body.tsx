import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { parseExactly } from "../../base/exact-number.ts";
import { formatCount } from "../../base/format.ts";
import { Chart } from "../../chart/chart.tsx";
import type { ChartData } from "../../chart/plot.ts";
import { CopyButton } from "../../components/copy-button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { Grid, type GridSort } from "../../grid/grid.tsx";
import type { RunningResult } from "../../results/running-result.ts";
import { knownType, panelName, textOption, type Panel } from "./document.ts";
import { HeatMapView, LogsView, PieView, BarsView, StatsView } from "./drawings.tsx";
import { Markdown } from "./markdown-view.tsx";
import { Left } from "./panel-note.tsx";
import { CALCULATIONS, seriesChart, withEnds, type Rows } from "./rows.ts";
import type { Bounds } from "./time-range.ts";
import { valueFormat } from "./units.ts";
import { useSizePx } from "./use-browser.ts";
import type { PanelRun } from "./use-panel-run.ts";

export type PanelBodyProps = {
  panel: Panel;
  run: PanelRun;
  bounds: Bounds;
  /** Why it does not run yet. */
  waiting: string | undefined;
  /** Why it cannot run. */
  problem: string | undefined;
  onRetry: () => void;
  onRange: (fromSeconds: number, toSeconds: number) => void;
};

/** What is below a panel's title: its rows as its type draws them, or why there are none. */
export function PanelBody(props: PanelBodyProps): JSX.Element {
  const { panel, run, waiting, problem, onRetry } = props;
  const type = knownType(panel.type);
  if (type === undefined) {
    return <p class="panel-note">Panels of the type “{panel.type}” are not drawn here. It stays as it is.</p>;
  }
  if (type === "text") {
    const text = textOption(panel, "text");
    if (text === "") return <p class="panel-note">This panel has no text yet.</p>;
    return (
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by the keyboard
      <div class="panel-scroll" tabIndex={0} role="region" aria-label={`${panelName(panel)}: text`}>
        <Markdown text={text} />
      </div>
    );
  }
  if (panel.queries.length === 0) return <p class="panel-note">This panel has no query yet.</p>;
  if (problem !== undefined) return <ErrorBox error={problem} />;
  if (run.error !== undefined) return <ErrorBox title="The query failed." error={run.error} onRetry={onRetry} />;
  if (run.result !== undefined)
    return <TableView name={panelName(panel)} result={run.result} key={run.result.startedMs} />;
  if (run.rows.length > 0) return <Drawn {...props} type={type} />;
  if (waiting !== undefined) return <p class="panel-note">{waiting}</p>;
  return run.isRunning ? <Spinner label="Running…" /> : <p class="panel-note">Runs when scrolled into view.</p>;
}

type DrawnProps = PanelBodyProps & { type: NonNullable<ReturnType<typeof knownType>> };

function Drawn(props: DrawnProps): JSX.Element {
  const { panel, run, type } = props;
  const [rows] = run.rows;
  const unit = textOption(panel, "unit");
  const format = useMemo(() => valueFormat(unit), [unit]);
  const name = panelName(panel);
  if (rows === undefined || run.rows.every(({ count }) => count === 0)) {
    return <p class="panel-note">No rows in this range.</p>;
  }
  switch (type) {
    case "stat": {
      const wanted = textOption(panel, "calculation");
      const calculation = CALCULATIONS.find((one) => one === wanted) ?? "last";
      return <StatsView all={run.rows} calculation={calculation} format={format} />;
    }
    case "pie":
      return <PieView name={name} rows={rows} format={format} />;
    case "heatmap":
      return <HeatMapView name={name} rows={rows} format={format} />;
    case "logs":
      return <LogsView name={name} rows={rows} />;
    case "bar":
      return rows.columns.some(({ kind }) => kind === "time") ? (
        <SeriesView {...props} look="bars" format={format} />
      ) : (
        <BarsView name={name} rows={rows} format={format} />
      );
    case "table":
    case "text":
    case "timeseries": {
      const wanted = textOption(panel, "look");
      const look = (["lines", "areas", "bars"] as const).find((one) => one === wanted) ?? "lines";
      return <SeriesView {...props} look={look} format={format} />;
    }
  }
}

type SeriesViewProps = PanelBodyProps & { look: "lines" | "areas" | "bars"; format: (value: number) => string };

/** A legend has lines of some entries below the chart. */
const LEGEND_LINE_PX = 26;
const ENTRIES_OF_WIDTH_PX = 170;

function SeriesView({ panel, run, bounds, look, format, onRange }: SeriesViewProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const { width, height } = useSizePx(place);
  const [fromS, toS] = [bounds.fromMs / 1_000, bounds.toMs / 1_000];
  const chart = useMemo(() => drawnChart(run.rows, look, fromS, toS), [run.rows, look]);
  const titles = chart?.series.map(({ title }) => title).join("\n");
  // One value for as long as the lines have the same names: another one makes another chart.
  const series = useMemo(() => chart?.series.map(({ title }) => ({ title })) ?? [], [titles]);
  const data = useMemo<ChartData>(
    () => [chart?.xs ?? [], ...(chart?.series.map(({ values }) => values) ?? [])],
    [chart],
  );
  const entries = Math.max(1, Math.floor(width / ENTRIES_OF_WIDTH_PX));
  const legendPx = series.length > 1 ? Math.ceil((series.length + 1) / entries) * LEGEND_LINE_PX : 0;
  const heightPx = Math.max(90, height - Math.min(legendPx, height / 2));
  return (
    <div class="panel-fill" ref={place}>
      {chart === undefined ? (
        <p class="panel-note">There is nothing to draw: a query needs a time, or a number, and another number.</p>
      ) : (
        height > 0 && (
          <>
            <Chart
              label={`${panelName(panel)}: ${series.map(({ title }) => title).join(", ")}`}
              data={data}
              series={series}
              look={look}
              isTime={chart.isTime}
              zone="utc"
              unit={format}
              heightPx={heightPx}
              {...(chart.isTime && { onRange })}
            />
            <Left count={chart.left} what="series" />
          </>
        )
      )}
    </div>
  );
}

/** Bars have no ends of the range: they are drawn as wide as the steps between them. */
function drawnChart(rows: readonly Rows[], look: string, fromS: number, toS: number) {
  const chart = seriesChart(rows);
  return chart === undefined || !chart.isTime || look === "bars" ? chart : withEnds(chart, fromS, toS);
}

const NO_COLUMNS: ReadonlySet<number> = new Set();

function TableView({ name, result }: { name: string; result: RunningResult }): JSX.Element {
  const [sort, setSort] = useState<GridSort | undefined>();
  const [, draw] = useState(0);
  const [opened, setOpened] = useState<string | undefined>();
  if (result.rows === 0) return <p class="panel-note">No rows in this range.</p>;
  const sortBy = (next: GridSort | undefined): void => {
    setSort(next);
    void result.sort(next?.column, next?.isDescending ?? false).then(() => draw((count) => count + 1));
  };
  return (
    <div class="panel-fill panel-table">
      <Grid
        label={`${name}: ${formatCount(result.rows)} rows`}
        result={result}
        hidden={NO_COLUMNS}
        sort={sort}
        onSort={sortBy}
        onOpen={({ row }) => void result.rowJson(row).then(setOpened)}
      />
      {result.head?.isTruncated === true && <p class="panel-more">The first {formatCount(result.rows)} rows.</p>}
      {opened !== undefined && (
        <Dialog
          title={`${name}: a row`}
          width="wide"
          actions={<CopyButton text={opened} label="Copy the row as JSON" />}
          onClose={() => setOpened(undefined)}
        >
          <JsonTree value={parseExactly(opened)} />
        </Dialog>
      )}
    </div>
  );
}

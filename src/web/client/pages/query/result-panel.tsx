import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { toast } from "../../base/announce.ts";
import { ApiError } from "../../base/api-error.ts";
import { clock } from "../../base/clock.ts";
import { plural } from "../../base/format.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Field } from "../../components/field.tsx";
import { KeyHint } from "../../components/key-hint.tsx";
import type { MenuItem } from "../../components/menu-props.ts";
import { Menu } from "../../components/menu.tsx";
import { Icon } from "../../components/icons.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { Grid, type GridSort } from "../../grid/grid.tsx";
import type { CopyFormat } from "../../results/result-store.ts";
import { CellDialog } from "./cell-dialog.tsx";
import { isRendered } from "./chart-choice.ts";
import { ColumnsDialog } from "./columns-dialog.tsx";
import { download, DOWNLOADS } from "./download.ts";
import { ResultChart } from "./result-chart.tsx";
import { useQueryRecord, type QueryRecord } from "./query-record.ts";
import { ResultStatus } from "./result-status.tsx";
import { failureTitle, type ResultOfRun } from "./use-result.ts";

type ResultPanelProps = { current: ResultOfRun | undefined; onRetry: () => void };

/** The rows of what was run last, as a table or drawn; or why there are none. */
export function ResultPanel({ current, onRetry }: ResultPanelProps): JSX.Element {
  if (current === undefined) {
    return (
      <EmptyState icon="query" title="No rows yet">
        <p>
          Write a query above and press <KeyHint keys="Mod-Enter" />. What is selected runs alone.
        </p>
      </EmptyState>
    );
  }
  const { run, result } = current;
  if (run.isExplained === true && result.state === "done") return <Plan current={current} key={result.startedMs} />;
  return <Rows current={current} onRetry={onRetry} key={result.startedMs} />;
}

function Rows({ current, onRetry }: { current: ResultOfRun; onRetry: () => void }): JSX.Element {
  const { run, result } = current;
  const [look, setLook] = useState<"rows" | "chart">("rows");
  const [sort, setSort] = useState<GridSort | undefined>();
  const [isSorting, setSorting] = useState(false);
  const [hidden, setHidden] = useState<ReadonlySet<number>>(new Set());
  const [isChoosing, setChoosing] = useState(false);
  const [opened, setOpened] = useState<{ row: number; column: number } | undefined>();
  const copy = useRef<((format: CopyFormat) => Promise<void>) | undefined>(undefined);
  const followed = useQueryRecord(current);
  const render = result.head?.render;
  useEffect(() => {
    if (isRendered(render)) setLook("chart");
  }, [render]);
  const sortBy = (next: GridSort | undefined): void => {
    setSort(next);
    setSorting(true);
    void result.sort(next?.column, next?.isDescending ?? false).finally(() => setSorting(false));
  };
  return (
    <section class="result" aria-label="Result">
      <div class="result-bar">
        <ResultStatus current={current} followed={followed} isSorting={isSorting} />
        {result.columns.length > 0 && (
          <div class="result-actions">
            <Search result={result} />
            <Button look="quiet" icon="table" onClick={() => setChoosing(true)}>
              Columns
            </Button>
            <Menu label="Copy" items={copyItems((format) => void copy.current?.(format))}>
              <Icon name="copy" />
              <span>Copy</span>
            </Menu>
            <Menu label="Download" items={downloadItems(current)}>
              <Icon name="external" />
              <span>Download</span>
            </Menu>
          </div>
        )}
      </div>
      {result.error !== undefined && (
        <ErrorBox
          title={failureTitle(result.error)}
          error={explained(result.error, followed.record)}
          onRetry={onRetry}
        />
      )}
      {result.columns.length === 0 ? (
        result.isRunning && <Spinner label={run.isExplained === true ? "Asking for the plan…" : "Waiting for rows…"} />
      ) : (
        <Tabs
          label="How the rows are shown"
          tabs={[
            { id: "rows", title: "Rows" },
            { id: "chart", title: "Chart" },
          ]}
          selected={look}
          onSelect={setLook}
        >
          {look === "rows" ? (
            <Grid
              label={`Rows: ${plural(result.rows, "row")}`}
              result={result}
              hidden={hidden}
              sort={sort}
              onSort={sortBy}
              onOpen={setOpened}
              onReady={(own) => (copy.current = own)}
            />
          ) : (
            <ResultChart result={result} />
          )}
        </Tabs>
      )}
      {isChoosing && (
        <ColumnsDialog
          columns={result.columns}
          hidden={hidden}
          onChange={setHidden}
          onClose={() => setChoosing(false)}
        />
      )}
      {opened !== undefined && <CellDialog result={result} cell={opened} onClose={() => setOpened(undefined)} />}
    </section>
  );
}

/** An answer that has begun cannot say any more that somebody ended its query: the server's record can. */
function explained(error: ApiError, record: QueryRecord | undefined): ApiError {
  if (error.code !== "broken_off" || record?.outcome !== "cancelled") return error;
  const ender = record.ended_by === null ? "" : ` by ${JSON.stringify(record.ended_by)}`;
  const message = `the query was ended${ender} while its rows were arriving. Those received so far are below`;
  return new ApiError(error.status, { ...error.details, code: "cancelled", message }, { cause: error });
}

const SEARCH_AFTER_MS = 250;

function Search({ result }: { result: ResultOfRun["result"] }): JSX.Element {
  const [text, setText] = useState("");
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    return clock.after(SEARCH_AFTER_MS, () => void result.filter(text));
  }, [result, text]);
  return (
    <Field
      label="Search the rows"
      isLabelHidden
      type="search"
      placeholder="Search the rows"
      value={text}
      onInput={setText}
    />
  );
}

function copyItems(copy: (format: CopyFormat) => void): MenuItem[] {
  return [
    { id: "tsv", title: "As TSV, for a spreadsheet", heading: "Selected cells, or all", run: () => copy("tsv") },
    { id: "json", title: "As JSON", run: () => copy("json") },
    { id: "markdown", title: "As a Markdown table", run: () => copy("markdown") },
  ];
}

function downloadItems({ run }: ResultOfRun): MenuItem[] {
  return DOWNLOADS.map(({ id, title }, index) => ({
    id,
    title,
    heading: index === 0 ? "All rows (runs the query again)" : undefined,
    run: () => {
      toast(`Downloading as ${title}…`);
      download(run, id).catch((error: unknown) => toast(error instanceof Error ? error.message : String(error), "bad"));
    },
  }));
}

/** What EXPLAIN says: one text for each part of it. */
function Plan({ current: { result } }: { current: ResultOfRun }): JSX.Element {
  const [parts, setParts] = useState<{ title: string; text: string }[]>([]);
  useEffect(() => {
    let isGone = false;
    const rows = Array.from({ length: result.rows }, (_, row) => row);
    void Promise.all(rows.map((row) => Promise.all([result.cell(row, 0), result.cell(row, 1)]))).then((cells) => {
      if (!isGone) setParts(cells.map(([title, text]) => ({ title: title.text ?? "", text: text.text ?? "" })));
    });
    return () => void (isGone = true);
  }, [result]);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by the keyboard
    <section class="plan" aria-label="Plan" tabIndex={0}>
      {parts.map(({ title, text }) => (
        <div key={title + text} class="plan-part">
          <h2>{PLAN_TITLES[title] ?? title}</h2>
          <pre>{text}</pre>
        </div>
      ))}
    </section>
  );
}

const PLAN_TITLES: Readonly<Record<string, string>> = {
  sql: "The SQL that it becomes",
  physical_plan: "Plan",
  analyzed_plan: "Plan, with times",
  extents: "What it reads",
};

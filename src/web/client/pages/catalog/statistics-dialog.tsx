import type { JSX } from "preact";
import { formatCount } from "../../base/format.ts";
import { useQuery } from "../../base/use-query.ts";
import { DataTable } from "../../components/data-table.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { readStatistics, type FrequentValue } from "./catalog-api.ts";

type StatisticsDialogProps = { database: string; table: string; column: string; onClose: () => void };

/** What a column holds: counts, ends, the most frequent values. It is read for this, so it is asked for by a click. */
export function StatisticsDialog({ database, table, column, onClose }: StatisticsDialogProps): JSX.Element {
  const read = useQuery({
    key: ["catalog", "statistics", database, table, column],
    read: (signal) => readStatistics(database, table, column, signal),
    staleMs: 60_000,
  });
  const { statistics, frequent = [] } = read.data ?? {};
  const facts =
    statistics === undefined
      ? []
      : ([
          ["Rows", formatCount(statistics.rows)],
          ["Without a value", formatCount(statistics.rows - statistics.present)],
          ["Different values, about", formatCount(statistics.distinct_values)],
          ["Least", statistics.least ?? "none"],
          ["Greatest", statistics.greatest ?? "none"],
        ] as const);
  return (
    <Dialog title={column} width="wide" onClose={onClose}>
      {read.error !== null && (
        <ErrorBox title="The column could not be read." error={read.error} onRetry={() => void read.refetch()} />
      )}
      {read.data === undefined && read.error === null && <Spinner label="Reading the column…" />}
      {statistics !== undefined && (
        <>
          <dl class="catalog-facts">
            {facts.map(([title, value]) => (
              <div key={title}>
                <dt>{title}</dt>
                <dd class="catalog-value">{value}</dd>
              </div>
            ))}
          </dl>
          <DataTable
            label={`The most frequent values of ${column}`}
            columns={[
              { title: "Value", cell: ({ value }: FrequentValue) => <span class="mono">{value ?? "no value"}</span> },
              { title: "Rows", isNumber: true, cell: ({ n }: FrequentValue) => formatCount(n) },
            ]}
            rows={frequent}
            keyOf={({ value }) => `${value === null}${value ?? ""}`}
          />
        </>
      )}
    </Dialog>
  );
}

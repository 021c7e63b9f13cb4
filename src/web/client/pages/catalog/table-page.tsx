import { useLocation } from "preact-iso";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { formatBytes, formatCount, formatDuration, plural } from "../../base/format.ts";
import { choice, text } from "../../base/params.ts";
import { useMay } from "../../base/session.ts";
import { useOpenQuery } from "../../base/use-open-query.ts";
import { useParams } from "../../base/use-params.ts";
import { useQuery } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Field } from "../../components/field.tsx";
import { PageHead } from "../../components/page-head.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { VirtualTable, type VirtualColumn } from "../../components/virtual-table.tsx";
import {
  quoted,
  readColumns,
  readExtents,
  readOpenFacts,
  readSnapshots,
  type ColumnFacts,
  type ExtentFacts,
  type SnapshotFacts,
  type TableFacts,
} from "./catalog-api.ts";
import { StatisticsDialog } from "./statistics-dialog.tsx";
import { Upload } from "./upload.tsx";

const PARAMS = { part: choice(["columns", "extents", "snapshots", "ingest"], "columns"), column: text() };

type TablePageProps = { database: string; table: string; facts: TableFacts | undefined; onBack: () => void };

/** One table. One that is not there yet is made by the first file that is sent to it. */
export function TablePage({ database, table, facts, onBack }: TablePageProps): JSX.Element {
  const [{ part }, update] = useParams(PARAMS);
  const { route } = useLocation();
  const openQuery = useOpenQuery(database);
  const isNew = facts === undefined;
  // When the first piece has made the table, the rest is still on its way: the part stays.
  useEffect(() => {
    if (isNew) update({ part: "ingest" }, "replace");
  }, [isNew]);
  const shown = isNew ? "ingest" : part;
  return (
    <>
      <PageHead title={table} lead={leadOf(facts, database)}>
        <Button look="quiet" onClick={onBack}>
          All tables
        </Button>
        {facts !== undefined && (
          <>
            <Button
              icon="explore"
              onClick={() => route(`/ui/explore?${new URLSearchParams({ db: database, table }).toString()}`)}
            >
              Explore
            </Button>
            <Button icon="query" onClick={() => openQuery(`SELECT * FROM ${quoted(table)} LIMIT 100`)}>
              Query
            </Button>
          </>
        )}
      </PageHead>
      {facts !== undefined && <Facts database={database} facts={facts} />}
      <Tabs
        label={`About ${table}`}
        tabs={
          facts === undefined
            ? [{ id: "ingest", title: "Send a file" }]
            : [
                { id: "columns", title: "Columns" },
                { id: "extents", title: "Extents" },
                { id: "snapshots", title: "Snapshots" },
                { id: "ingest", title: "Send a file" },
              ]
        }
        selected={shown}
        onSelect={(next) => update({ part: next })}
      >
        <div class="catalog-part">
          {shown === "columns" && <Columns database={database} table={table} />}
          {shown === "extents" && <Extents database={database} table={table} />}
          {shown === "snapshots" && <Snapshots database={database} table={table} onQuery={openQuery} />}
          {shown === "ingest" && <Upload database={database} table={table} isNew={facts === undefined} />}
        </div>
      </Tabs>
    </>
  );
}

function leadOf(facts: TableFacts | undefined, database: string): string {
  if (facts === undefined) return `Not in the database ${database} yet: the first rows make it.`;
  const { rows, bytes, extents, columns } = facts;
  return `${plural(rows, "row")}, ${formatBytes(bytes)} in ${plural(extents, "extent")}, ${plural(columns, "column")}.`;
}

function Facts({ database, facts }: { database: string; facts: TableFacts }): JSX.Element {
  const { name, retention_days: days, cluster_by: clusterBy, infer_types: isInferred } = facts;
  // What other programs see is told to those who may write.
  const may = useMay("write");
  const open = useQuery({
    key: ["catalog", "open", database, name],
    read: (signal) => readOpenFacts(database, name, signal),
    isEnabled: may,
  });
  const shown = [
    ["Kept", days === null ? "for ever" : plural(days, "day")],
    ["Ordered by", clusterBy === null ? "time" : (JSON.parse(clusterBy) as string[]).join(", ")],
    ["Types of new columns", isInferred === null ? "as the server says" : isInferred ? "by their values" : "string"],
    ...(open.data === undefined
      ? []
      : [
          [
            "Not yet in the open table",
            open.data.unpublished_rows === 0
              ? "nothing"
              : `${plural(open.data.unpublished_rows, "row")}, ${formatBytes(open.data.unpublished_bytes)}`,
          ],
          [
            "Published within",
            open.data.open_lag_secs === null ? "as the server says" : formatDuration(open.data.open_lag_secs * 1_000),
          ],
        ]),
  ];
  return (
    <>
      <dl class="catalog-facts">
        {shown.map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {open.error !== null && (
        <ErrorBox
          title="Could not read the table's publishing status."
          error={open.error}
          onRetry={() => void open.refetch()}
        />
      )}
    </>
  );
}

type PartProps = { database: string; table: string };

function Columns({ database, table }: PartProps): JSX.Element {
  const [{ column: chosen }, update] = useParams(PARAMS);
  const [find, setFind] = useState("");
  const columns = useQuery({
    key: ["catalog", "columns", database, table],
    read: (signal) => readColumns(database, table, signal),
  });
  const wanted = find.trim().toLowerCase();
  const found = useMemo(
    () => (columns.data ?? []).filter(({ name, type }) => `${name} ${type}`.toLowerCase().includes(wanted)),
    [columns.data, wanted],
  );
  const shown: readonly VirtualColumn<ColumnFacts>[] = [
    {
      id: "name",
      title: "Column",
      width: "minmax(8rem, 1fr)",
      cell: ({ name }) => (
        <button
          type="button"
          class="link mono"
          title={`Statistics of ${name}`}
          onClick={() => update({ column: name })}
        >
          {name}
        </button>
      ),
    },
    { id: "type", title: "Type", width: "8rem", cell: ({ type }) => <span class="mono">{type}</span> },
    { id: "origin", title: "Origin", width: "7rem", isMinor: true, cell: ({ origin }) => origin },
    {
      id: "misfits",
      title: "Misfits",
      width: "6rem",
      isNumber: true,
      cell: ({ misfits }) => (misfits === 0 ? "" : formatCount(misfits)),
    },
  ];
  if (columns.error !== null) {
    return (
      <ErrorBox title="The columns could not be read." error={columns.error} onRetry={() => void columns.refetch()} />
    );
  }
  if (columns.data === undefined) return <Spinner label="Reading the columns…" />;
  return (
    <div class="stack">
      <Field
        label="Find a column"
        isLabelHidden
        type="search"
        placeholder="Find a column by its name or type"
        value={find}
        onInput={setFind}
      />
      <VirtualTable label={`Columns of ${table}`} columns={shown} rows={found} keyOf={({ name }) => name} />
      <p class="note">Misfits are values that did not fit their column and were kept in props.</p>
      {chosen !== "" && (
        <StatisticsDialog database={database} table={table} column={chosen} onClose={() => update({ column: "" })} />
      )}
    </div>
  );
}

const EXTENT_COLUMNS: readonly VirtualColumn<ExtentFacts>[] = [
  { id: "from", title: "From", width: "11rem", cell: ({ min_at: at }) => timeText(at) },
  { id: "to", title: "To", width: "11rem", isMinor: true, cell: ({ max_at: at }) => timeText(at) },
  { id: "rows", title: "Rows", width: "6rem", isNumber: true, cell: ({ rows }) => formatCount(rows) },
  { id: "bytes", title: "Size", width: "6rem", isNumber: true, cell: ({ bytes }) => formatBytes(bytes) },
  {
    id: "format",
    title: "Format",
    width: "7rem",
    isMinor: true,
    cell: ({ format, format_version: version }) => `${format} ${version}`,
  },
  {
    id: "open",
    title: "Open",
    width: "6rem",
    isMinor: true,
    cell: ({ is_publishable: isOpen }) => (isOpen ? "yes" : "not yet"),
  },
  {
    id: "snapshot",
    title: "Since snapshot",
    width: "8rem",
    isNumber: true,
    isMinor: true,
    cell: ({ begin_snapshot: snapshot }) => snapshot,
  },
  { id: "id", title: "Id", width: "minmax(20rem, 1fr)", isMinor: true, cell: ({ id }) => <code>{id}</code> },
];

function Extents({ database, table }: PartProps): JSX.Element {
  const extents = useQuery({
    key: ["catalog", "extents", database, table],
    read: (signal) => readExtents(database, table, signal),
    everyMs: 30_000,
  });
  if (extents.error !== null) {
    return (
      <ErrorBox title="The extents could not be read." error={extents.error} onRetry={() => void extents.refetch()} />
    );
  }
  if (extents.data === undefined) return <Spinner label="Reading the extents…" />;
  if (extents.data.length === 0) {
    return (
      <EmptyState icon="catalog" title="No extents">
        <p>The table has no rows that are committed.</p>
      </EmptyState>
    );
  }
  return (
    <div class="stack">
      <p class="note">{formatsOf(extents.data)} Times are UTC.</p>
      <VirtualTable label={`Extents of ${table}`} columns={EXTENT_COLUMNS} rows={extents.data} keyOf={({ id }) => id} />
    </div>
  );
}

function formatsOf(extents: readonly ExtentFacts[]): string {
  const formats = Map.groupBy(extents, ({ format }) => format);
  const said = [...formats].map(([format, all]) => {
    const bytes = all.reduce((sum, one) => sum + one.bytes, 0);
    return `${format}: ${plural(all.length, "extent")}, ${formatBytes(bytes)}`;
  });
  return `${said.join("; ")}.`;
}

function timeText(at: string | null): string {
  return at === null ? "" : at.slice(0, 19).replace("T", " ");
}

function changeText(added: number, removed: number): string {
  const parts = [added > 0 ? `+${formatCount(added)}` : "", removed > 0 ? `−${formatCount(removed)}` : ""];
  return parts.filter((part) => part !== "").join(" ");
}

type SnapshotsProps = PartProps & { onQuery: (text: string) => void };

function Snapshots({ database, table, onQuery }: SnapshotsProps): JSX.Element {
  const snapshots = useQuery({
    key: ["catalog", "snapshots", database, table],
    read: (signal) => readSnapshots(database, table, signal),
    everyMs: 30_000,
  });
  const columns: readonly VirtualColumn<SnapshotFacts>[] = [
    { id: "id", title: "Snapshot", width: "8rem", isNumber: true, cell: ({ id }) => id },
    { id: "at", title: "Committed (UTC)", width: "12rem", cell: ({ committed_at: at }) => timeText(at) },
    { id: "operation", title: "Operation", width: "7rem", cell: ({ operation }) => operation },
    {
      id: "rows",
      title: "Rows",
      width: "10rem",
      isNumber: true,
      cell: (one) => changeText(one.rows_added, one.rows_removed),
    },
    {
      id: "extents",
      title: "Extents",
      width: "8rem",
      isNumber: true,
      cell: (one) => changeText(one.extents_added, one.extents_removed),
    },
    {
      id: "query",
      title: "Query",
      width: "minmax(9rem, 1fr)",
      cell: ({ id }) => (
        <button
          type="button"
          class="link"
          onClick={() => onQuery(`SELECT * FROM ${quoted(table)} AT (VERSION => ${id}) LIMIT 100`)}
        >
          Query as of {id}
        </button>
      ),
    },
  ];
  if (snapshots.error !== null) {
    return (
      <ErrorBox
        title="The snapshots could not be read."
        error={snapshots.error}
        onRetry={() => void snapshots.refetch()}
      />
    );
  }
  if (snapshots.data === undefined) return <Spinner label="Reading the snapshots…" />;
  return (
    <div class="stack">
      <p class="note">
        The snapshots that changed the table, the newest first. It can be read at those between them as well: numbers
        are shared by all tables.
      </p>
      <VirtualTable label="Snapshots" columns={columns} rows={snapshots.data} keyOf={({ id }) => String(id)} />
    </div>
  );
}

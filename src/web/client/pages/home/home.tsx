import type { JSX } from "preact";
import { useSchema, type Database } from "../../base/schema.ts";
import { formatBytes, formatCount, formatShortCount, plural } from "../../base/format.ts";
import { readTableSizes, type TableSize } from "../../base/table-sizes.ts";
import { useQuery } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { DataTable, type DataColumn } from "../../components/data-table.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { PageHead } from "../../components/page-head.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { NotSetUp } from "./not-set-up.tsx";
import "./home.css";

/** Of more, each is a request; the catalog's page lists all. */
const MOST_DATABASES = 50;

/** What is here: databases and tables with their sizes; on an empty server, how to begin. */
export function HomePage(): JSX.Element {
  const schema = useSchema();
  const databases = schema.data ?? [];
  const isEmpty = databases.every(({ tables }) => tables.length === 0);
  const shown = databases.filter(({ tables }) => tables.length > 0).slice(0, MOST_DATABASES);
  const sizes = useQuery({
    key: ["table-sizes", ...shown.map(({ name }) => name)],
    read: async (signal) => {
      const read = shown.map(async ({ name }) => [name, await readTableSizes(name, signal)] as const);
      return new Map(await Promise.all(read));
    },
    isEnabled: shown.length > 0,
    everyMs: 30_000,
  });
  const readAgain = () => {
    void schema.refetch();
    if (shown.length > 0) void sizes.refetch();
  };
  if (schema.data === undefined) {
    return (
      <>
        <PageHead title="Overview" />
        {schema.error === null ? (
          <Spinner label="Reading what is here…" />
        ) : (
          <ErrorBox title="The list of tables could not be read." error={schema.error} onRetry={readAgain} />
        )}
      </>
    );
  }
  if (isEmpty) {
    return (
      <>
        <FirstSteps onCheck={readAgain} isChecking={schema.isFetching} />
        <NotSetUp />
      </>
    );
  }
  return (
    <>
      <PageHead title="Overview" lead="What this server holds. The name of a table leads to its rows.">
        <Button icon="refresh" isBusy={schema.isFetching || sizes.isFetching} onClick={readAgain}>
          Refresh
        </Button>
      </PageHead>
      <Totals databases={databases} sizes={sizes.data} />
      {sizes.error !== null && (
        <ErrorBox title="The sizes could not be read." error={sizes.error} onRetry={readAgain} />
      )}
      {shown.map((database) => (
        <DatabaseTables key={database.name} database={database} sizes={sizes.data?.get(database.name)} />
      ))}
      {databases.length > shown.length && shown.length === MOST_DATABASES && (
        <p class="lead">{plural(databases.length - shown.length, "more database")} not shown here.</p>
      )}
      <NotSetUp />
    </>
  );
}

type Sizes = ReadonlyMap<string, readonly TableSize[]>;

function Totals({ databases, sizes }: { databases: readonly Database[]; sizes: Sizes | undefined }): JSX.Element {
  const all = sizes === undefined ? undefined : [...sizes.values()].flat();
  const sum = (count: (size: TableSize) => number) => all?.reduce((total, size) => total + count(size), 0);
  const [rows, bytes] = [sum((size) => size.rows), sum((size) => size.bytes)];
  const figures = [
    { title: "Databases", value: formatCount(databases.length) },
    { title: "Tables", value: formatCount(databases.reduce((count, { tables }) => count + tables.length, 0)) },
    { title: "Rows", value: rows === undefined ? "…" : formatShortCount(rows) },
    { title: "Stored", value: bytes === undefined ? "…" : formatBytes(bytes) },
  ];
  return (
    <dl class="figures">
      {figures.map(({ title, value }) => (
        <div key={title} class="figure">
          <dt>{title}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

type Row = { name: string; address: string; columns: number; size: TableSize | undefined };

const COLUMNS: readonly DataColumn<Row>[] = [
  {
    title: "Table",
    cell: ({ name, address }) => (
      <a class="mono" href={address}>
        {name}
      </a>
    ),
  },
  { title: "Rows", isNumber: true, cell: ({ size }) => (size === undefined ? "…" : formatCount(size.rows)) },
  { title: "Stored", isNumber: true, cell: ({ size }) => (size === undefined ? "…" : formatBytes(size.bytes)) },
  { title: "Columns", isNumber: true, isMinor: true, cell: ({ columns }) => formatCount(columns) },
  {
    title: "Extents",
    isNumber: true,
    isMinor: true,
    cell: ({ size }) => (size === undefined ? "…" : formatCount(size.extents)),
  },
];

type DatabaseTablesProps = { database: Database; sizes: readonly TableSize[] | undefined };

function DatabaseTables({ database: { name, tables }, sizes }: DatabaseTablesProps): JSX.Element {
  const rows = tables.map((table): Row => ({
    name: table.name,
    address: `/ui/explore?db=${encodeURIComponent(name)}&table=${encodeURIComponent(table.name)}`,
    columns: table.columns.length,
    size: sizes?.find((size) => size.name === table.name),
  }));
  return (
    <section class="card database-tables">
      <h2 class="card-head">
        <span class="mono">{name}</span> <small>{plural(tables.length, "table")}</small>
      </h2>
      <DataTable label={`Tables of ${name}`} columns={COLUMNS} rows={rows} keyOf={(row) => row.name} />
    </section>
  );
}

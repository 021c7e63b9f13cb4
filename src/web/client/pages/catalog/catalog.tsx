import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatBytes, formatCount, plural } from "../../base/format.ts";
import { choice, flag, text } from "../../base/params.ts";
import { useDatabase, usePageAddress } from "../../base/schema.ts";
import { useParams } from "../../base/use-params.ts";
import { useQuery } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Field } from "../../components/field.tsx";
import { PageHead } from "../../components/page-head.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { VirtualTable, type VirtualColumn } from "../../components/virtual-table.tsx";
import { readDatabases, readTables, type TableFacts } from "./catalog-api.ts";
import { TablePage } from "./table-page.tsx";
import "./catalog.css";

const PARAMS = {
  table: text(),
  find: text(),
  sort: choice(["name", "rows", "bytes", "extents", "columns"], "name"),
  desc: flag(),
};

/** Databases and their tables; of one table its columns, extents and snapshots, and what is sent to it. */
export function CatalogPage(): JSX.Element {
  const [database] = useDatabase();
  const [{ table }, update] = useParams(PARAMS);
  const tables = useQuery({
    key: ["catalog", "tables", database],
    read: (signal) => readTables(database, signal),
    everyMs: 30_000,
  });
  if (tables.data === undefined) {
    return (
      <>
        <PageHead title="Catalog" />
        {tables.error === null ? (
          <Spinner label="Reading the tables…" />
        ) : (
          <ErrorBox title="The tables could not be read." error={tables.error} onRetry={() => void tables.refetch()} />
        )}
      </>
    );
  }
  if (table !== "") {
    const facts = tables.data.find(({ name }) => name.toLowerCase() === table.toLowerCase());
    return (
      <TablePage
        key={`${database}.${table}`}
        database={database}
        table={facts?.name ?? table}
        facts={facts}
        onBack={() => update({ table: "" })}
      />
    );
  }
  return <TableList database={database} tables={tables.data} />;
}

type TableListProps = { database: string; tables: readonly TableFacts[] };

function TableList({ database, tables }: TableListProps): JSX.Element {
  const [{ find, sort, desc }, update] = useParams(PARAMS);
  const addressOf = usePageAddress();
  const shown = useMemo(() => tablesOf(tables, find, sort, desc), [tables, find, sort, desc]);
  const sum = (count: (table: TableFacts) => number) => tables.reduce((total, table) => total + count(table), 0);
  const columns: readonly VirtualColumn<TableFacts>[] = [
    {
      id: "name",
      title: "Table",
      width: "minmax(9rem, 1fr)",
      isSortable: true,
      cell: ({ name }) => (
        <button type="button" class="link mono" onClick={() => update({ table: name })}>
          {name}
        </button>
      ),
    },
    ...NUMBERS,
  ];
  return (
    <>
      <PageHead
        title="Catalog"
        lead={`${plural(tables.length, "table")} of ${database}: ${plural(
          sum(({ rows }) => rows),
          "row",
        )}, ${formatBytes(sum(({ bytes }) => bytes))}.`}
      >
        <Button icon="plus" needs="write" onClick={() => update({ table: find === "" ? "events" : find })}>
          Send a file to a table
        </Button>
      </PageHead>
      <div class="catalog">
        <Databases />
        <div class="stack">
          <Field
            label="Find a table"
            isLabelHidden
            type="search"
            placeholder="Find a table"
            value={find}
            onInput={(value) => update({ find: value }, "replace")}
          />
          {tables.length === 0 ? (
            <EmptyState icon="catalog" title={`The database ${database} has no tables`}>
              <p>
                A table is made by the first rows that are sent to it: <a href={addressOf("")}>the overview</a> says
                how.
              </p>
            </EmptyState>
          ) : (
            <VirtualTable
              label={`Tables of ${database}`}
              columns={columns}
              rows={shown}
              keyOf={({ name }) => name}
              sort={{ by: sort, isDescending: desc }}
              onSort={({ by, isDescending }) => update({ sort: PARAMS.sort.read(by) ?? "name", desc: isDescending })}
            />
          )}
        </div>
      </div>
    </>
  );
}

const NUMBERS: readonly VirtualColumn<TableFacts>[] = [
  { id: "rows", title: "Rows", width: "7rem", isNumber: true, isSortable: true, cell: ({ rows }) => formatCount(rows) },
  {
    id: "bytes",
    title: "Stored",
    width: "6.5rem",
    isNumber: true,
    isSortable: true,
    cell: ({ bytes }) => formatBytes(bytes),
  },
  {
    id: "extents",
    title: "Extents",
    width: "6rem",
    isNumber: true,
    isSortable: true,
    isMinor: true,
    cell: ({ extents }) => formatCount(extents),
  },
  {
    id: "columns",
    title: "Columns",
    width: "6rem",
    isNumber: true,
    isSortable: true,
    isMinor: true,
    cell: ({ columns }) => formatCount(columns),
  },
];

type SortBy = "name" | "rows" | "bytes" | "extents" | "columns";

function tablesOf(tables: readonly TableFacts[], find: string, by: SortBy, isDescending: boolean): TableFacts[] {
  const wanted = find.trim().toLowerCase();
  const found = tables.filter(({ name }) => name.toLowerCase().includes(wanted));
  const sign = isDescending ? -1 : 1;
  return found.sort((a, b) => sign * (by === "name" ? a.name.localeCompare(b.name) : a[by] - b[by]));
}

/** Drawn at most; the field at the top of the page finds the others. */
const MOST_DATABASES = 200;

function Databases(): JSX.Element {
  const [database, choose] = useDatabase();
  const databases = useQuery({ key: ["catalog", "databases"], read: readDatabases });
  const all = databases.data ?? [database];
  return (
    <nav class="catalog-databases" aria-label="Databases">
      <h2>Databases</h2>
      {databases.error !== null && <ErrorBox error={databases.error} onRetry={() => void databases.refetch()} />}
      <ul>
        {all.slice(0, MOST_DATABASES).map((name) => (
          <li key={name}>
            <button
              type="button"
              class="catalog-database mono"
              aria-current={name === database ? "true" : undefined}
              onClick={() => choose(name)}
            >
              {name}
            </button>
          </li>
        ))}
      </ul>
      {all.length > MOST_DATABASES && <p class="note">{plural(all.length - MOST_DATABASES, "more database")}.</p>}
    </nav>
  );
}

import { useLocation } from "preact-iso";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { clock } from "../../base/clock.ts";
import { useCommands } from "../../base/commands.ts";
import { messageOf } from "../../base/log-fields.ts";
import { packText } from "../../base/packed-text.ts";
import { choice, flag, json, text } from "../../base/params.ts";
import { useDatabase, useSchema, type Table } from "../../base/schema.ts";
import { useParams } from "../../base/use-params.ts";
import { Button } from "../../components/button.tsx";
import { Combobox } from "../../components/combobox.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { PageHead } from "../../components/page-head.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { RangePicker } from "../../time/range-picker.tsx";
import { DEFAULT_RANGE, momentsOf, rangeOf } from "../../time/time-range.ts";
import { AroundDialog } from "./around-dialog.tsx";
import { fieldKey, levelColumn, nestedFields, sameField, type FieldPath } from "./fields.ts";
import { FilterBar } from "./filter-bar.tsx";
import { areFields, areFilters, conditionProblem, conditionSql, withFilter, type Filter } from "./filters.ts";
import { FoundRows } from "./found-rows.tsx";
import { Histogram, NO_LEVEL } from "./histogram.tsx";
import { rowsSql, type Scope } from "./queries.ts";
import type { RowActions } from "./row-actions.ts";
import type { RowLook } from "./row-list.tsx";
import { SidePanel } from "./side-panel.tsx";
import { written } from "./sql.ts";
import { TailView } from "./tail-view.tsx";
import { useRows } from "./use-rows.ts";
import "./explore.css";

const PARAMS = {
  table: text(),
  from: text(DEFAULT_RANGE.from),
  to: text(DEFAULT_RANGE.to),
  zone: choice(["utc", "browser"], "utc"),
  filters: json<Filter[]>([], areFilters),
  where: text(),
  facets: json<FieldPath[]>([], areFields),
  by: text(),
  /** The time of the row around which rows are shown. */
  around: text(),
  live: flag(),
};

/** Rows of a table in a range of time: how many when, which values, the newest, and those that come. */
export function ExplorePage(): JSX.Element {
  const [database] = useDatabase();
  const schema = useSchema();
  const [{ table }, update] = useParams(PARAMS);
  const tables = schema.data?.find(({ name }) => name.toLowerCase() === database.toLowerCase())?.tables;
  const chosen = tables?.find(({ name }) => name.toLowerCase() === table.toLowerCase());
  const only = table === "" && tables?.length === 1 ? tables[0] : undefined;
  const shown = chosen ?? only;
  const choose = (name: string): void =>
    update({ table: name, filters: [], where: "", facets: [], by: "", around: "", live: false });
  if (schema.data === undefined) {
    return (
      <>
        <PageHead title="Explore" />
        {schema.error === null ? (
          <Spinner label="Reading the tables…" />
        ) : (
          <ErrorBox title="The tables could not be read." error={schema.error} onRetry={() => void schema.refetch()} />
        )}
      </>
    );
  }
  if (shown === undefined) {
    return <TableChoice database={database} table={table} tables={tables ?? []} onChoose={choose} />;
  }
  if (!shown.columns.some(({ name }) => name === "at")) {
    return (
      <>
        <PageHead title="Explore" />
        <EmptyState icon="explore" title={`${shown.name} has no time column`}>
          <p>Explore needs a column named at. Use the query page for this table.</p>
        </EmptyState>
      </>
    );
  }
  return (
    <Explored
      key={`${database}.${shown.name}`}
      database={database}
      table={shown}
      tables={tables ?? []}
      onTable={choose}
    />
  );
}

type TableChoiceProps = { database: string; table: string; tables: readonly Table[]; onChoose: (name: string) => void };

const MOST_OFFERED = 60;

function TableChoice({ database, table, tables, onChoose }: TableChoiceProps): JSX.Element {
  if (tables.length === 0) {
    return (
      <>
        <PageHead title="Explore" />
        <EmptyState icon="explore" title={`The database ${database} has no tables`}>
          <p>A table is made by the first rows that are sent to it: the overview says how.</p>
        </EmptyState>
      </>
    );
  }
  return (
    <>
      <PageHead
        title="Explore"
        lead={table === "" ? "Which table?" : `The database ${database} has no table ${table}. Which one instead?`}
      />
      <div class="explore-choice">
        <Combobox
          label="Table"
          value=""
          options={tables.map(({ name }) => ({ value: name, title: name }))}
          onChange={onChoose}
        />
        <ul class="explore-tables">
          {tables.slice(0, MOST_OFFERED).map(({ name }) => (
            <li key={name}>
              <Button icon="table" onClick={() => onChoose(name)}>
                {name}
              </Button>
            </li>
          ))}
        </ul>
      </div>
    </>
  );
}

type ExploredProps = { database: string; table: Table; tables: readonly Table[]; onTable: (name: string) => void };

function Explored({ database, table, tables, onTable }: ExploredProps): JSX.Element {
  const [values, update] = useParams(PARAMS);
  const { zone, filters, where, facets, by, around, live } = values;
  const { columns, name } = table;
  const [runs, setRuns] = useState(0);
  const range = useMemo(() => ({ from: values.from, to: values.to }), [values.from, values.to]);
  const problem = conditionProblem(where);
  const filterKey = JSON.stringify([filters, where]);
  // The present of `now-1h` is when it was asked for: all parts of the page are about the same time.
  const scope = useMemo((): Scope | undefined => {
    const moments = momentsOf(range, clock.nowMs(), zone);
    if (moments === undefined || problem !== undefined) return undefined;
    return { table: name, columns, moments, condition: conditionSql(filters, where, columns) };
  }, [range, zone, name, columns, filterKey, problem, runs]);
  const rows = useRows(database, live ? undefined : scope);
  const firstRows = rows.groups[0]?.rows;
  const nested = useMemo(() => nestedFields(columns, firstRows ?? []), [columns, firstRows]);
  const level = by === "" ? levelColumn(columns) : by === NO_LEVEL ? undefined : by;
  const look = useMemo<RowLook>(() => ({ zone, message: messageOf(columns)?.name, level }), [zone, columns, level]);
  const actions = useMemo<RowActions>(
    () => ({
      filter: (field, op, value) => update({ filters: withFilter(filters, { ...field, op, value }), around: "" }),
      facet: (field) => update({ facets: [...facets.filter((one) => !sameField(one, field)), field], around: "" }),
      around: (at) => update({ around: at }),
    }),
    [update, filterKey, JSON.stringify(facets)],
  );
  const openAsQuery = useOpenAsQuery(database, scope);
  const refresh = (): void => setRuns((count) => count + 1);
  useCommands([
    { id: "explore:refresh", title: "Read the rows again", group: "Explore", keys: "r", run: refresh },
    { id: "explore:live", title: "Live tail", group: "Explore", keys: "l", run: () => update({ live: !live }) },
    { id: "explore:query", title: "Open as query", group: "Explore", run: openAsQuery },
  ]);
  return (
    <div class="explore">
      <h1 class="unseen">Explore</h1>
      <div class="explore-bar">
        <Combobox
          label="Table"
          isLabelHidden
          class="explore-table"
          value={name}
          options={tables.map((one) => ({ value: one.name, title: one.name }))}
          onChange={onTable}
        />
        <RangePicker
          range={range}
          zone={zone}
          onRange={(next) => update({ ...next, live: false })}
          onZone={(next) => update({ zone: next })}
        />
        <Button icon="refresh" label="Read again" isBusy={rows.isFetching} onClick={refresh} />
        <Button icon={live ? "stop" : "play"} isPressed={live} onClick={() => update({ live: !live })}>
          Live
        </Button>
        <Button look="quiet" icon="query" onClick={openAsQuery}>
          Open as query
        </Button>
      </div>
      <FilterBar
        columns={columns}
        nested={nested}
        filters={filters}
        condition={where}
        problem={problem}
        onFilters={(next) => update({ filters: next })}
        onCondition={(next) => update({ where: next })}
      />
      {scope === undefined && problem === undefined && (
        <ErrorBox error={new Error(`${range.from} to ${range.to} is not a valid time range: choose another above.`)} />
      )}
      {scope !== undefined && live && (
        <TailView database={database} table={name} condition={scope.condition} look={look} actions={actions} />
      )}
      {scope !== undefined && !live && (
        <>
          <Histogram
            database={database}
            scope={scope}
            zone={zone}
            by={level}
            choice={by}
            onBy={(next) => update({ by: next })}
            onRange={(moments) => update(rangeOf(moments))}
          />
          <div class="explore-parts">
            <SidePanel
              database={database}
              scope={scope}
              nested={nested}
              facets={facets}
              actions={actions}
              onRemove={(field) => update({ facets: facets.filter((one) => fieldKey(one) !== fieldKey(field)) })}
            />
            <FoundRows
              found={rows}
              look={look}
              actions={actions}
              onWiden={() => update({ from: "now-30d", to: "now" })}
            />
          </div>
        </>
      )}
      {around !== "" && (
        <AroundDialog
          database={database}
          table={name}
          condition={scope?.condition}
          at={around}
          look={look}
          actions={actions}
          onClose={() => update({ around: "" })}
        />
      )}
    </div>
  );
}

/** To the query page, with the rows of the scope as a text whose values are literals. */
function useOpenAsQuery(database: string, scope: Scope | undefined): () => void {
  const { route } = useLocation();
  return () => {
    if (scope === undefined) return;
    void packText(written(rowsSql(scope))).then((packed) =>
      route(`/ui/query?db=${encodeURIComponent(database)}#q=${packed}`),
    );
  };
}

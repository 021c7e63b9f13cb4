import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { clock } from "../../base/clock.ts";
import { useCommands } from "../../base/commands.ts";
import { messageOf } from "../../base/log-fields.ts";
import { choice, flag, json, text } from "../../base/params.ts";
import { useDatabase, usePageAddress, useSchema, type Table } from "../../base/schema.ts";
import { useOpenQuery } from "../../base/use-open-query.ts";
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
import {
  fieldItems,
  isSplit,
  isWithin,
  levelColumn,
  MOST_DYNAMIC,
  MOST_FACETS,
  sameField,
  type FieldPath,
} from "./fields.ts";
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
import { useCounts, type FoundCounts } from "./use-counts.ts";
import { useRows, type FoundPages } from "./use-rows.ts";
import "./explore.css";

const PARAMS = {
  table: text(),
  from: text(DEFAULT_RANGE.from),
  to: text(DEFAULT_RANGE.to),
  zone: choice(["utc", "browser"], "utc"),
  filters: json<Filter[]>([], areFilters),
  where: text(),
  facets: json<FieldPath[]>([], (value) => areFields(value, MOST_FACETS)),
  /** Keys in dynamic columns whose own keys are shown. */
  open: json<FieldPath[]>([], (value) => areFields(value, MOST_DYNAMIC)),
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
    update({ table: name, filters: [], where: "", facets: [], open: [], by: "", around: "", live: false });
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
  const addressOf = usePageAddress();
  if (tables.length === 0) {
    return (
      <>
        <PageHead title="Explore" />
        <EmptyState icon="explore" title={`The database ${database} has no tables`}>
          <p>
            A table is made by the first rows that are sent to it: <a href={addressOf("")}>the overview</a> says how.
          </p>
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

/** What the page is about, in the address's words and in the server's. */
function useScope(table: Table): { scope: Scope | undefined; problem: string | undefined; readAgain: () => void } {
  const [{ from, to, zone, filters, where }] = useParams(PARAMS);
  const { columns, name } = table;
  const [run, setRun] = useState(0);
  const problem = conditionProblem(where);
  const filterKey = JSON.stringify([filters, where]);
  // The present of `now-1h` is when it was asked for: all parts of the page are about the same time.
  const scope = useMemo((): Scope | undefined => {
    const moments = momentsOf({ from, to }, clock.nowMs(), zone);
    if (moments === undefined || problem !== undefined) return undefined;
    return { table: name, columns, moments, condition: conditionSql(filters, where, columns), run };
  }, [from, to, zone, name, columns, filterKey, problem, run]);
  return { scope, problem, readAgain: () => setRun((count) => count + 1) };
}

function useActions(): RowActions {
  const [{ filters, facets }, update] = useParams(PARAMS);
  return useMemo<RowActions>(
    () => ({
      filter: (field, op, value) => update({ filters: withFilter(filters, { ...field, op, value }), around: "" }),
      // One more than the server counts takes the place of the one that was opened first.
      facet: (field) =>
        update({
          facets: [...facets.filter((one) => !sameField(one, field)), field].slice(-MOST_FACETS),
          around: "",
        }),
      around: (at) => update({ around: at }),
    }),
    [update, JSON.stringify(filters), JSON.stringify(facets)],
  );
}

function Explored({ database, table, tables, onTable }: ExploredProps): JSX.Element {
  const [values, update] = useParams(PARAMS);
  const { from, to, zone, filters, where, facets, open, by, around, live } = values;
  const { columns, name } = table;
  const { scope, problem, readAgain } = useScope(table);
  const choice = by === NO_LEVEL || isSplit(columns, by) ? by : "";
  const level = choice === "" ? levelColumn(columns) : choice === NO_LEVEL ? undefined : choice;
  const searched = live ? undefined : scope;
  const rows = useRows(database, searched);
  const counts = useCounts(database, searched, { by: level, facets, open });
  const fields = useMemo(
    () => fieldItems(columns, open, counts.fields).flatMap((item) => ("note" in item ? [] : [item.field])),
    [columns, open, counts.fields],
  );
  const look = useMemo<RowLook>(() => ({ zone, message: messageOf(columns)?.name, level }), [zone, columns, level]);
  const actions = useActions();
  const openQuery = useOpenQuery(database);
  const openAsQuery = () => {
    // Its values are literals there.
    if (scope !== undefined) openQuery(written(rowsSql(scope)));
  };
  useCommands([
    { id: "explore:refresh", title: "Read the rows again", group: "Explore", keys: "r", run: readAgain },
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
          range={{ from, to }}
          zone={zone}
          onRange={(next) => update({ ...next, live: false })}
          onZone={(next) => update({ zone: next })}
        />
        <Button icon="refresh" label="Read again" isBusy={rows.isFetching || counts.isCounting} onClick={readAgain} />
        <Button icon={live ? "stop" : "play"} isPressed={live} onClick={() => update({ live: !live })}>
          Live
        </Button>
        <Button look="quiet" icon="query" onClick={openAsQuery}>
          Open as query
        </Button>
      </div>
      <FilterBar
        fields={fields}
        filters={filters}
        condition={where}
        problem={problem}
        onFilters={(next) => update({ filters: next })}
        onCondition={(next) => update({ where: next })}
      />
      {scope === undefined && problem === undefined && (
        <ErrorBox error={new Error(`${from} to ${to} is not a valid time range: choose another above.`)} />
      )}
      {scope !== undefined && live && (
        <TailView database={database} table={name} condition={scope.condition} look={look} actions={actions} />
      )}
      {searched !== undefined && (
        <Found scope={searched} choice={choice} look={look} rows={rows} counts={counts} actions={actions} />
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

type FoundProps = {
  scope: Scope;
  choice: string;
  look: RowLook;
  rows: FoundPages;
  counts: FoundCounts;
  actions: RowActions;
};

/** What there is in the scope: how many rows when, of which values and fields, and the rows. */
function Found({ scope, choice, look, rows, counts, actions }: FoundProps): JSX.Element {
  const [{ facets, open }, update] = useParams(PARAMS);
  return (
    <>
      <Histogram
        scope={scope}
        counts={counts}
        zone={look.zone}
        choice={choice}
        onBy={(next) => update({ by: next })}
        onRange={(moments) => update(rangeOf(moments))}
      />
      <div class="explore-parts">
        <SidePanel
          columns={scope.columns}
          counts={counts}
          facets={facets}
          open={open}
          actions={actions}
          onRemove={(field) => update({ facets: facets.filter((one) => !sameField(one, field)) })}
          onOpen={(field, isOpen) => {
            const others = open.filter((one) => !isWithin(one, field));
            update({ open: isOpen ? [...others, field] : others });
          }}
        />
        <FoundRows found={rows} look={look} actions={actions} onWiden={() => update({ from: "now-30d", to: "now" })} />
      </div>
    </>
  );
}

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { plural } from "../../base/format.ts";
import { useQuery } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { formatTimestamp } from "../../time/time-range.ts";
import { readAround } from "./explore-api.ts";
import type { RowActions } from "./row-actions.ts";
import { RowGroup, type RowLook } from "./row-list.tsx";
import { prepared, type Sql } from "./sql.ts";

type AroundDialogProps = {
  database: string;
  table: string;
  condition: Sql | undefined;
  at: string;
  look: RowLook;
  actions: RowActions;
  onClose: () => void;
};

const FIRST_ROWS = 20;
const MOST_ROWS = 500;

/** Rows before and after one, oldest first, as they stand in a log: all of them, or those that pass the filters. */
export function AroundDialog(props: AroundDialogProps): JSX.Element {
  const { database, table, condition, at, look, actions, onClose } = props;
  const [count, setCount] = useState(FIRST_ROWS);
  const [isFiltered, setFiltered] = useState(false);
  const scope = { table, condition: isFiltered ? condition : undefined };
  const around = useQuery({
    key: ["explore", "around", database, table, at, count, scope.condition && prepared(scope.condition)],
    read: (signal) => readAround(database, scope, at, count, signal),
    staleMs: Number.POSITIVE_INFINITY,
  });
  const { before = [], same = [], after = [] } = around.data ?? {};
  const rows = [...before, ...same, ...after].map((row, i) => ({ key: i - before.length, row }));
  return (
    <Dialog title={`Rows around ${formatTimestamp(at, look.zone)}`} width="wide" class="around" onClose={onClose}>
      <div class="row">
        <Button
          isDisabled={count >= MOST_ROWS}
          reason="More rows are for a query."
          isBusy={around.isFetching}
          onClick={() => setCount(Math.min(count * 3, MOST_ROWS))}
        >
          More before and after
        </Button>
        {condition !== undefined && (
          <Button isPressed={isFiltered} onClick={() => setFiltered(!isFiltered)}>
            With the filters
          </Button>
        )}
        <span class="side-more">
          {plural(before.length, "row")} before, {plural(after.length, "row")} after
        </span>
      </div>
      {around.error !== null && <ErrorBox error={around.error} onRetry={() => void around.refetch()} />}
      {around.data === undefined ? (
        around.error === null && <Spinner label="Reading the rows around it…" />
      ) : (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by the keyboard
        <div class="around-rows" role="region" aria-label="Rows around it, oldest first" tabIndex={0}>
          <RowGroup rows={rows} look={look} actions={actions} marked={at} />
        </div>
      )}
    </Dialog>
  );
}

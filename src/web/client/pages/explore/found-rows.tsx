import type { JSX } from "preact";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { formatTimestamp } from "../../time/time-range.ts";
import { SAME_TIME_ROWS } from "./queries.ts";
import type { RowActions } from "./row-actions.ts";
import { RowGroup, type RowLook } from "./row-list.tsx";
import type { FoundPages } from "./use-rows.ts";

type FoundRowsProps = { found: FoundPages; look: RowLook; actions: RowActions; onWiden: () => void };

const GROUP_ROWS = 50;

/** The newest rows of the range, and older ones when asked for. */
export function FoundRows({ found, look, actions, onWiden }: FoundRowsProps): JSX.Element {
  const { groups, error, hasOlder, isReadingOlder, olderError, readOlder, readAgain } = found;
  if (error !== null && error !== undefined && groups.length === 0) {
    return <ErrorBox title="The rows could not be read." error={error} onRetry={readAgain} />;
  }
  if (groups.length === 0) return <Spinner label="Reading the newest rows…" />;
  if (groups.every(({ rows }) => rows.length === 0)) {
    return (
      <EmptyState icon="explore" title="No rows here">
        <p>The table has no rows in this range under these filters.</p>
        <Button onClick={onWiden}>Look at the last 30 days</Button>
      </EmptyState>
    );
  }
  return (
    <section class="explore-rows" aria-label="Rows, newest first">
      {groups.map(({ rows, cutAt }) => (
        <div key={String(rows[0]?.["at"])}>
          {Array.from({ length: Math.ceil(rows.length / GROUP_ROWS) }, (_, i) => (
            <RowGroup
              key={`group ${i * GROUP_ROWS}`}
              rows={rows.slice(i * GROUP_ROWS, (i + 1) * GROUP_ROWS).map((row, j) => ({ key: j, row }))}
              look={look}
              actions={actions}
            />
          ))}
          {cutAt !== undefined && (
            <p class="log-gap">
              More rows have the time {formatTimestamp(cutAt, look.zone)}: {SAME_TIME_ROWS.toLocaleString("en-US")} of
              them are shown.
            </p>
          )}
        </div>
      ))}
      {olderError !== undefined && (
        <ErrorBox title="The older rows could not be read." error={olderError} onRetry={readOlder} />
      )}
      {hasOlder ? (
        <Button isBusy={isReadingOlder} icon="down" onClick={readOlder}>
          Older rows
        </Button>
      ) : (
        <p class="log-end">These are all rows of the range.</p>
      )}
    </section>
  );
}

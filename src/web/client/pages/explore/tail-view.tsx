import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatCount, plural } from "../../base/format.ts";
import { Button } from "../../components/button.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Spinner } from "../../components/spinner.tsx";
import type { RowActions } from "./row-actions.ts";
import { RowGroup, type RowLook } from "./row-list.tsx";
import { written, type Sql } from "./sql.ts";
import { HELD_ROWS, type TailEntry } from "./tail-buffer.ts";
import type { Row } from "./paging.ts";
import { useTail, type TailState } from "./use-tail.ts";

type TailViewProps = {
  database: string;
  table: string;
  condition: Sql | undefined;
  look: RowLook;
  actions: RowActions;
};

const STATES: Readonly<Record<TailState, string>> = {
  connecting: "Connecting…",
  open: "Live",
  waiting: "The connection is lost; trying again…",
  ended: "Ended",
};

/**
 * Rows as they are committed, newest first.
 *
 * The component that redraws ten times a second has to be the only child of another one. Preact replaces a component that
 * redraws itself in its parent's list of children, but not in the `props.children` of an element around it. Those keep the
 * tree of the first draw, which leads to every later one: a row group points to the list of groups it was last drawn in.
 * Without this, 50 seconds of 1,000 rows left 40,000 rows in memory (November 2026, `npm run bench -- run web/tail`).
 */
export function TailView(props: TailViewProps): JSX.Element {
  return <LiveRows {...props} />;
}

function LiveRows({ database, table, condition, look, actions }: TailViewProps): JSX.Element {
  const filter = condition === undefined ? undefined : written(condition);
  const tail = useTail({ database, table, filter });
  const { buffer, state, error } = tail;
  const { shown } = buffer;
  const groups = useMemo(() => groupsOf(shown), [shown]);
  return (
    <section class="explore-rows" aria-label="Live rows, newest first">
      <div class="tail-bar">
        <span class={`tail-state tail-${state}`} role="status">
          {state === "connecting" && <Spinner />} {buffer.isPaused ? "Paused" : STATES[state]}
        </span>
        <span class="tail-count">
          {plural(buffer.received, "row")} so far{buffer.waiting > 0 && `, ${formatCount(buffer.waiting)} waiting`}
        </span>
        {buffer.isPaused ? (
          <Button look="primary" icon="play" onClick={tail.resume}>
            Resume
          </Button>
        ) : (
          <Button icon="stop" onClick={tail.pause}>
            Pause
          </Button>
        )}
        <Button look="quiet" icon="trash" onClick={tail.clear}>
          Clear
        </Button>
      </div>
      {state === "ended" && <ErrorBox title="The live tail has ended." error={error} onRetry={tail.restart} />}
      {shown.length === 0 && state !== "ended" && (
        <p class="log-end">
          Rows that are committed from now on appear here. The last {formatCount(HELD_ROWS)} are held.
        </p>
      )}
      {groups.map((group) =>
        "gap" in group ? (
          <p key={group.key} class="log-gap">
            {group.gap}
          </p>
        ) : (
          <RowGroup key={group.key} rows={group.rows} look={look} actions={actions} />
        ),
      )}
    </section>
  );
}

type Group = { key: string } & ({ gap: string } | { rows: { key: number; row: Row }[] });

const GROUP_ROWS = 50;

/** Newest first, in groups that keep their rows while newer ones come; a mark parts groups. */
export function groupsOf(entries: readonly TailEntry[]): Group[] {
  const groups: Group[] = [];
  for (const entry of entries.toReversed()) {
    if ("gap" in entry) {
      groups.push({ key: `gap ${entry.place}`, gap: entry.gap });
      continue;
    }
    const number = Math.floor(entry.place / GROUP_ROWS);
    const last = groups.at(-1);
    const item = { key: entry.place, row: entry.row };
    if (last !== undefined && "rows" in last && Math.floor((last.rows[0]?.key ?? 0) / GROUP_ROWS) === number) {
      last.rows.push(item);
    } else {
      // A mark may stand in the middle of a number's rows: both parts have names of their own.
      const part = groups.filter(({ key }) => key.startsWith(`rows ${number}.`)).length;
      groups.push({ key: `rows ${number}.${part}`, rows: [item] });
    }
  }
  return groups;
}

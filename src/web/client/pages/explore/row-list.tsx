import type { JSX } from "preact";
import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { severityOf } from "../../base/log-fields.ts";
import { Button } from "../../components/button.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { Icon } from "../../components/icons.tsx";
import type { Zone } from "../../time/calendar.ts";
import { formatTimestamp } from "../../time/time-range.ts";
import type { Row } from "./paging.ts";
import type { RowActions } from "./row-actions.ts";
import { RowFields } from "./row-fields.tsx";
import { jsonOf, textOf } from "./values.ts";

export type RowLook = { zone: Zone; message: string | undefined; level: string | undefined };

type RowListProps = {
  rows: readonly { key: string | number; row: Row }[];
  look: RowLook;
  actions: RowActions;
  /** The row that is pointed out. */
  marked?: string | undefined;
};

/** Of a row's text in one line. */
const SHOWN_CHARS = 600;

/** Rows of one group; the browser lays out only groups that are in view. */
export const RowGroup = memo(function RowGroup({ rows, look, actions, marked }: RowListProps): JSX.Element {
  return (
    <ul class="row-group" style={{ containIntrinsicHeight: `auto ${rows.length * 26}px` }}>
      {rows.map(({ key, row }) => (
        <RowView
          key={key}
          row={row}
          look={look}
          actions={actions}
          isMarked={marked !== undefined && row["at"] === marked}
        />
      ))}
    </ul>
  );
}, sameProps);

function sameProps(before: Readonly<RowListProps>, after: Readonly<RowListProps>): boolean {
  return (
    before.look === after.look &&
    before.actions === after.actions &&
    before.marked === after.marked &&
    before.rows.length === after.rows.length &&
    before.rows.every(({ row }, i) => row === after.rows[i]?.row)
  );
}

type RowViewProps = { row: Row; look: RowLook; actions: RowActions; isMarked: boolean };

const RowView = memo(function RowView({ row, look, actions, isMarked }: RowViewProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const at = textOf(row["at"]) ?? "";
  const level = look.level === undefined ? null : textOf(row[look.level]);
  const message = look.message === undefined ? null : textOf(row[look.message]);
  return (
    <li class={isMarked ? "log log-marked" : "log"}>
      <button type="button" class="log-line" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} size={12} />
        <time class="log-time" dateTime={at}>
          {formatTimestamp(at, look.zone)}
        </time>
        {level !== null && <span class={`log-level log-level-${severityOf(level)}`}>{level}</span>}
        <span class="log-text">
          {message !== null && <span class="log-message">{message.slice(0, SHOWN_CHARS)} </span>}
          <span class="log-rest">{restOf(row, look)}</span>
        </span>
      </button>
      {isOpen && (
        <div class="log-detail">
          <div class="row">
            <Button look="quiet" icon="more" onClick={() => actions.around(at)}>
              Rows around it
            </Button>
            <CopyButton text={jsonOf(row)} label="Copy the row as JSON" />
          </div>
          <RowFields row={row} actions={actions} />
        </div>
      )}
    </li>
  );
});

function restOf(row: Row, { message, level }: RowLook): string {
  let text = "";
  for (const [name, value] of Object.entries(row)) {
    if (value === null || name === "at" || name === message || name === level) continue;
    text += `${name}=${(textOf(value) ?? "").slice(0, 120)} `;
    if (text.length > SHOWN_CHARS) break;
  }
  return text;
}

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatCount, plural } from "../../base/format.ts";
import { Icon } from "../../components/icons.tsx";
import { ExactNumber } from "../../base/exact-number.ts";
import { fieldTitle, type FieldPath } from "./fields.ts";
import type { Row } from "./paging.ts";
import type { RowActions } from "./row-actions.ts";
import { textOf } from "./values.ts";

/** Of an object or a list, and of a long text. */
const SHOWN_PARTS = 200;
const SHOWN_CHARS = 20_000;

/** The fields of a row as a tree; each value can be filtered for, filtered out, or made a facet. */
export function RowFields({ row, actions }: { row: Row; actions: RowActions }): JSX.Element {
  const all = Object.entries(row);
  const set = all.filter(([, value]) => value !== null);
  return (
    <div class="fields">
      {set.map(([name, value]) => (
        <Part key={name} name={name} value={value} field={{ column: name, keys: [] }} actions={actions} />
      ))}
      {all.length > set.length && (
        <p class="fields-none">{plural(all.length - set.length, "column")} without a value.</p>
      )}
    </div>
  );
}

/** `field` is undefined below a list, whose items are no fields. */
type PartProps = { name: string; value: unknown; field: FieldPath | undefined; actions: RowActions };

function Part({ name, value, field, actions }: PartProps): JSX.Element {
  const [isOpen, setOpen] = useState(true);
  const [most, setMost] = useState(SHOWN_PARTS);
  if (typeof value !== "object" || value === null || value instanceof ExactNumber) {
    return <Leaf name={name} value={value} field={field} actions={actions} />;
  }
  const isList = Array.isArray(value);
  const parts: [string, unknown][] = isList ? value.map((item, i) => [String(i), item]) : Object.entries(value);
  return (
    <div class="field-part">
      <button type="button" class="field-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} size={12} />
        <span class="field-name">{name}</span>
        <span class="fields-none">{isList ? plural(parts.length, "item") : plural(parts.length, "member")}</span>
      </button>
      {isOpen && (
        <div class="field-parts">
          {parts.slice(0, most).map(([key, part]) => (
            <Part
              key={key}
              name={key}
              value={part}
              field={isList || field === undefined ? undefined : { column: field.column, keys: [...field.keys, key] }}
              actions={actions}
            />
          ))}
          {parts.length > most && (
            <button type="button" class="field-toggle" onClick={() => setMost(most + 5 * SHOWN_PARTS)}>
              {formatCount(parts.length - most)} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Leaf({ name, value, field, actions }: PartProps): JSX.Element {
  const text = textOf(value);
  const title = field === undefined ? name : fieldTitle(field);
  return (
    <div class="field-leaf">
      {field !== undefined && (
        <span class="field-actions">
          <Action
            label={`Filter for this value of ${title}`}
            sign="+"
            onClick={() => actions.filter(field, text === null ? "missing" : "=", text ?? "")}
          />
          <Action
            label={`Filter out this value of ${title}`}
            sign="−"
            onClick={() => actions.filter(field, text === null ? "exists" : "!=", text ?? "")}
          />
          <Action label={`Count the values of ${title}`} sign="#" onClick={() => actions.facet(field)} />
        </span>
      )}
      <span class="field-name">{name}</span>
      <span class={text === null ? "fields-none" : "field-value"}>{(text ?? "null").slice(0, SHOWN_CHARS)}</span>
    </div>
  );
}

function Action({ label, sign, onClick }: { label: string; sign: string; onClick: () => void }): JSX.Element {
  return (
    <button type="button" class="field-action" aria-label={label} title={label} onClick={onClick}>
      {sign}
    </button>
  );
}

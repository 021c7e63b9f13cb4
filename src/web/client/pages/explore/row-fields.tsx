import type { JSX } from "preact";
import { plural } from "../../base/format.ts";
import { TreePart } from "../../components/json-tree.tsx";
import { fieldTitle, type FieldPath } from "./fields.ts";
import type { Row } from "./paging.ts";
import type { RowActions } from "./row-actions.ts";
import { textOf } from "./values.ts";

/** Of a long text. */
const SHOWN_CHARS = 20_000;

/** The fields of a row as a tree; each value can be filtered for, filtered out, or made a facet. */
export function RowFields({ row, actions }: { row: Row; actions: RowActions }): JSX.Element {
  const all = Object.entries(row);
  const set = all.filter(([, value]) => value !== null);
  return (
    <div class="fields">
      {set.map(([name, value]) => (
        <TreePart
          key={name}
          name={name}
          value={value}
          keys={[]}
          openLevels={Number.POSITIVE_INFINITY}
          leaf={(key, part, keys) => (
            <Leaf name={key} value={part} field={keys && { column: name, keys }} actions={actions} />
          )}
        />
      ))}
      {all.length > set.length && (
        <p class="fields-none">{plural(all.length - set.length, "column")} without a value.</p>
      )}
    </div>
  );
}

/** `field` is undefined below a list, whose items are no fields. */
type LeafProps = { name: string; value: unknown; field: FieldPath | undefined; actions: RowActions };

function Leaf({ name, value, field, actions }: LeafProps): JSX.Element {
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

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { plural } from "../../base/format.ts";
import type { Column } from "../../base/schema.ts";
import { useIsNarrow } from "../../base/use-is-narrow.ts";
import { Field } from "../../components/field.tsx";
import { Icon } from "../../components/icons.tsx";
import { Facet } from "./facet.tsx";
import {
  columnOf,
  countedFields,
  fieldItems,
  fieldKey,
  fieldProblem,
  fieldTitle,
  MOST_DYNAMIC,
  type FieldItem,
  type FieldPath,
} from "./fields.ts";
import type { RowActions } from "./row-actions.ts";
import { countedAs, shortCount } from "./sample-note.tsx";
import type { FoundCounts } from "./use-counts.ts";

type SidePanelProps = {
  columns: readonly Column[];
  counts: FoundCounts;
  facets: readonly FieldPath[];
  /** Keys in dynamic columns whose own keys are shown. */
  open: readonly FieldPath[];
  actions: RowActions;
  onRemove: (field: FieldPath) => void;
  onOpen: (field: FieldPath, isOpen: boolean) => void;
};

/** Of the fields at once: others are found by typing. */
const MOST_FIELDS = 100;

/** The most frequent values of the fields that were chosen, and all fields with the rows that have them. */
export function SidePanel({ columns, counts, facets, open, actions, onRemove, onOpen }: SidePanelProps): JSX.Element {
  const [text, setText] = useState("");
  const isNarrow = useIsNarrow();
  // Where there is one column the fields would come between the bars and the rows.
  const [isListed, setListed] = useState(!isNarrow);
  const wanted = text.trim().toLowerCase();
  const items = useMemo(() => fieldItems(columns, open, counts.fields), [columns, open, counts.fields]);
  const found = items.filter((item) => fieldTitle(item.field).toLowerCase().includes(wanted));
  const chosen = new Set(facets.map(fieldKey));
  const withKeys = countedFields(columns, open).filter((field) => columnOf(columns, field)?.type === "dynamic").length;
  return (
    <aside class="explore-side" aria-label="Fields">
      {facets.map((field) => (
        <Facet
          key={fieldKey(field)}
          field={field}
          problem={fieldProblem(field, columns)}
          counts={counts.facets.get(fieldKey(field))}
          sample={counts.sample}
          isCounting={counts.isCounting}
          actions={actions}
          onRemove={() => onRemove(field)}
        />
      ))}
      {isNarrow ? (
        <h2>
          <button type="button" class="side-toggle" aria-expanded={isListed} onClick={() => setListed(!isListed)}>
            <Icon name={isListed ? "down" : "right"} size={14} />
            Fields
          </button>
        </h2>
      ) : (
        <h2>Fields</h2>
      )}
      {isListed && (
        <>
          <Field
            label="Find a field"
            isLabelHidden
            type="search"
            placeholder="Find a field"
            value={text}
            onInput={setText}
          />
          <ul class="side-fields">
            {found.slice(0, MOST_FIELDS).map((item) =>
              "note" in item ? (
                <li key={`note ${fieldKey(item.field)}`} class="side-more" style={indented(item.field.keys.length + 1)}>
                  {item.note}
                </li>
              ) : (
                <FieldLine
                  key={fieldKey(item.field)}
                  item={item}
                  counts={counts}
                  problem={fieldProblem(item.field, columns)}
                  isChosen={chosen.has(fieldKey(item.field))}
                  mayOpen={item.isOpen || withKeys < MOST_DYNAMIC}
                  onChoose={chosen.has(fieldKey(item.field)) ? onRemove : actions.facet}
                  onOpen={onOpen}
                />
              ),
            )}
          </ul>
          {found.length > MOST_FIELDS && <p class="side-more">{plural(found.length - MOST_FIELDS, "more field")}.</p>}
        </>
      )}
    </aside>
  );
}

type FieldLineProps = {
  item: Exclude<FieldItem, { note: string }>;
  counts: FoundCounts;
  problem: string | undefined;
  isChosen: boolean;
  mayOpen: boolean;
  onChoose: (field: FieldPath) => void;
  onOpen: (field: FieldPath, isOpen: boolean) => void;
};

function FieldLine(props: FieldLineProps): JSX.Element {
  const { item, counts, problem, isChosen, mayOpen, onChoose, onOpen } = props;
  const { field, type, rows, isOpen } = item;
  const { sample, isCounting } = counts;
  const isKey = field.keys.length > 0;
  return (
    <li class="side-line" style={indented(field.keys.length)}>
      {isKey && (
        <button
          type="button"
          class="field-action"
          aria-label={`Keys in ${fieldTitle(field)}`}
          aria-expanded={isOpen}
          aria-disabled={mayOpen ? undefined : "true"}
          title={mayOpen ? "Keys in it" : `Keys of at most ${MOST_DYNAMIC} fields are counted at once.`}
          onClick={() => {
            if (mayOpen) onOpen(field, !isOpen);
          }}
        >
          <Icon name={isOpen ? "down" : "right"} size={12} />
        </button>
      )}
      <button
        type="button"
        class="side-field"
        aria-pressed={isChosen}
        aria-disabled={problem === undefined ? undefined : "true"}
        title={
          problem ?? (rows === undefined ? undefined : `${countedAs(rows, "row", sample)} with ${fieldTitle(field)}`)
        }
        onClick={() => {
          if (problem === undefined) onChoose(field);
        }}
      >
        <span class="mono">
          {isKey && <span class="side-path">{fieldTitle({ ...field, keys: field.keys.slice(0, -1) })}.</span>}
          {field.keys.at(-1) ?? field.column}
        </span>{" "}
        {!isKey && <small>{type}</small>}{" "}
        <span class="facet-count">
          {rows === undefined ? isCounting && problem === undefined && "…" : shortCount(rows, sample)}
        </span>
      </button>
    </li>
  );
}

/** Keys stand under what they are in. */
function indented(levels: number): { paddingInlineStart: string } {
  return { paddingInlineStart: `${Math.min(levels, 8) * 0.75}rem` };
}

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatCount, formatShortCount, plural } from "../../base/format.ts";
import { useQuery } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Field } from "../../components/field.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { readFacet, type FacetValue } from "./explore-api.ts";
import { allFields, columnOf, fieldKey, fieldTitle, type FieldPath } from "./fields.ts";
import { FACET_VALUES, type Scope } from "./queries.ts";
import type { RowActions } from "./row-actions.ts";
import { scopeKey } from "./use-rows.ts";

type SidePanelProps = {
  database: string;
  scope: Scope;
  nested: readonly FieldPath[];
  facets: readonly FieldPath[];
  actions: RowActions;
  onRemove: (field: FieldPath) => void;
};

/** Of the fields at once: others are found by typing. */
const MOST_FIELDS = 100;

/** The most frequent values of the fields that were chosen, and all fields to choose from. */
export function SidePanel({ database, scope, nested, facets, actions, onRemove }: SidePanelProps): JSX.Element {
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase();
  const found = allFields(scope.columns, nested).filter((field) => fieldTitle(field).toLowerCase().includes(wanted));
  const chosen = new Set(facets.map(fieldKey));
  return (
    <aside class="explore-side" aria-label="Fields">
      {facets.map((field) => (
        <Facet
          key={fieldKey(field)}
          database={database}
          scope={scope}
          field={field}
          actions={actions}
          onRemove={() => onRemove(field)}
        />
      ))}
      <h2>Fields</h2>
      <Field
        label="Find a field"
        isLabelHidden
        type="search"
        placeholder="Find a field"
        value={text}
        onInput={setText}
      />
      <ul class="side-fields">
        {found.slice(0, MOST_FIELDS).map((field) => (
          <li key={fieldKey(field)}>
            <button
              type="button"
              class="side-field"
              aria-pressed={chosen.has(fieldKey(field))}
              onClick={() => (chosen.has(fieldKey(field)) ? onRemove(field) : actions.facet(field))}
            >
              <span class="mono">{fieldTitle(field)}</span>
              <small>{field.keys.length === 0 ? columnOf(scope.columns, field)?.type : "in JSON"}</small>
            </button>
          </li>
        ))}
      </ul>
      {found.length > MOST_FIELDS && <p class="side-more">{plural(found.length - MOST_FIELDS, "more field")}.</p>}
    </aside>
  );
}

type FacetProps = {
  database: string;
  scope: Scope;
  field: FieldPath;
  actions: RowActions;
  onRemove: () => void;
};

function Facet({ database, scope, field, actions, onRemove }: FacetProps): JSX.Element {
  const values = useQuery({
    key: ["explore", "facet", ...scopeKey(database, scope), fieldKey(field)],
    read: (signal) => readFacet(database, scope, field, signal),
    staleMs: Number.POSITIVE_INFINITY,
  });
  const most = Math.max(1, ...(values.data ?? []).map(({ n }) => n));
  const title = fieldTitle(field);
  return (
    <section class="facet" aria-label={`Values of ${title}`}>
      <div class="facet-head">
        <h2 class="mono">{title}</h2>
        <Button look="quiet" icon="close" label={`Close the values of ${title}`} onClick={onRemove} />
      </div>
      {values.error !== null && <ErrorBox error={values.error} onRetry={() => void values.refetch()} />}
      {values.data === undefined && values.error === null && <Spinner label="Counting…" />}
      {values.data?.length === 0 && <p class="side-more">No rows.</p>}
      <ul>
        {values.data?.map((one) => (
          <Value
            key={`${one.value === null}${one.value ?? ""}`}
            value={one}
            most={most}
            field={field}
            actions={actions}
          />
        ))}
      </ul>
      {values.data?.length === FACET_VALUES && <p class="side-more">The {FACET_VALUES} most frequent.</p>}
    </section>
  );
}

const SHOWN_CHARS = 200;

type ValueProps = { value: FacetValue; most: number; field: FieldPath; actions: RowActions };

function Value({ value: { value, n }, most, field, actions }: ValueProps): JSX.Element {
  const shown = value === null ? "no value" : value === "" ? "empty" : value.slice(0, SHOWN_CHARS);
  return (
    <li class="facet-value">
      <button
        type="button"
        class="facet-choice"
        title={`Filter for it: ${formatCount(n)} rows`}
        onClick={() => actions.filter(field, value === null ? "missing" : "=", value ?? "")}
      >
        <span class="facet-bar" style={{ width: `${(100 * n) / most}%` }} />
        <span class={value === null || value === "" ? "facet-text facet-none" : "facet-text"}>{shown}</span>
        <span class="facet-count">{formatShortCount(n)}</span>
      </button>
      <button
        type="button"
        class="field-action"
        aria-label={`Filter out ${shown}`}
        title="Filter out"
        onClick={() => actions.filter(field, value === null ? "exists" : "!=", value ?? "")}
      >
        −
      </button>
    </li>
  );
}

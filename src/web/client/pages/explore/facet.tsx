import type { JSX } from "preact";
import { Button } from "../../components/button.tsx";
import { Spinner } from "../../components/spinner.tsx";
import type { FacetCounts, Sample, ValueCount } from "./counts.ts";
import { fieldTitle, type FieldPath } from "./fields.ts";
import type { RowActions } from "./row-actions.ts";
import { countedAs, shortCount } from "./sample-note.tsx";

type FacetProps = {
  field: FieldPath;
  /** Why it cannot be counted. */
  problem: string | undefined;
  counts: FacetCounts | undefined;
  sample: Sample | undefined;
  isCounting: boolean;
  actions: RowActions;
  onRemove: () => void;
};

/** The most frequent values of a field with their rows, how many there are, and the rows of others and without one. */
export function Facet({ field, problem, counts, sample, isCounting, actions, onRemove }: FacetProps): JSX.Element {
  const title = fieldTitle(field);
  return (
    <section class="facet" aria-label={`Values of ${title}`}>
      <div class="facet-head">
        <h2 class="mono">{title}</h2>
        <Button look="quiet" icon="close" label={`Close the values of ${title}`} onClick={onRemove} />
      </div>
      {problem !== undefined && <p class="side-more">{problem}</p>}
      {problem === undefined && counts === undefined && (isCounting ? <Spinner label="Counting…" /> : <NotCounted />)}
      {counts !== undefined && <Values field={field} counts={counts} sample={sample} actions={actions} />}
    </section>
  );
}

function NotCounted(): JSX.Element {
  return <p class="side-more">Not counted: see the error above.</p>;
}

type ValuesProps = { field: FieldPath; counts: FacetCounts; sample: Sample | undefined; actions: RowActions };

function Values({ field, counts, sample, actions }: ValuesProps): JSX.Element {
  const { rows, nulls, distinct, values } = counts;
  if (rows + nulls === 0)
    return <p class="side-more">{sample === undefined ? "No rows." : "No rows in the sample."}</p>;
  const most = Math.max(1, nulls, ...values.map((one) => one.rows));
  const otherRows = rows - values.reduce((sum, one) => sum + one.rows, 0);
  const value = (one: ValueCount, i: number): JSX.Element => (
    <Value key={`place ${i}`} value={one} most={most} sample={sample} field={field} actions={actions} />
  );
  return (
    <>
      <p class="side-more">
        {countedAs(distinct, "value", sample)} in {countedAs(rows, "row", sample)}
      </p>
      <ul>
        {values.map(value)}
        {distinct > values.length && (
          <li class="facet-value facet-rest" title={countedAs(otherRows, "row", sample)}>
            <span class="facet-text">{countedAs(distinct - values.length, "other", sample)}</span>
            <span class="facet-count">{shortCount(otherRows, sample)}</span>
          </li>
        )}
        {nulls > 0 && value({ value: null, rows: nulls }, values.length)}
      </ul>
    </>
  );
}

const SHOWN_CHARS = 200;

type ValueProps = {
  value: ValueCount;
  most: number;
  sample: Sample | undefined;
  field: FieldPath;
  actions: RowActions;
};

function Value({ value: { value, rows, cut }, most, sample, field, actions }: ValueProps): JSX.Element {
  const shown = value === null ? "no value" : value === "" ? "empty" : value.slice(0, SHOWN_CHARS);
  const isCut = cut === true;
  const counted = countedAs(rows, "row", sample);
  const reason = `${counted}. The value is too long to filter for.`;
  return (
    <li class="facet-value">
      <button
        type="button"
        class="facet-choice"
        aria-disabled={isCut ? "true" : undefined}
        title={isCut ? reason : `Filter for it: ${counted}`}
        onClick={() => {
          if (!isCut) actions.filter(field, value === null ? "missing" : "=", value ?? "");
        }}
      >
        <span class="facet-bar" style={{ width: `${(100 * rows) / most}%` }} />
        <span class={value === null || value === "" ? "facet-text facet-none" : "facet-text"}>{shown}</span>
        <span class="facet-count">{shortCount(rows, sample)}</span>
      </button>
      <button
        type="button"
        class="field-action"
        aria-label={`Filter out ${shown}`}
        aria-disabled={isCut ? "true" : undefined}
        title={isCut ? reason : "Filter out"}
        onClick={() => {
          if (!isCut) actions.filter(field, value === null ? "exists" : "!=", value ?? "");
        }}
      >
        −
      </button>
    </li>
  );
}

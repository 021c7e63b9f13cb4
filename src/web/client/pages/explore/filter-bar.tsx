import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../../components/button.tsx";
import { Combobox } from "../../components/combobox.tsx";
import { Field, Select } from "../../components/field.tsx";
import { fieldKey, fieldTitle, type FieldPath } from "./fields.ts";
import { filterTitle, OPERATORS, takesValue, withFilter, type Filter, type Operator } from "./filters.ts";

type FilterBarProps = {
  fields: readonly FieldPath[];
  filters: readonly Filter[];
  condition: string;
  problem: string | undefined;
  onFilters: (filters: Filter[]) => void;
  onCondition: (condition: string) => void;
};

/** What rows must fulfil: chips, and a condition in SQL. */
export function FilterBar(props: FilterBarProps): JSX.Element {
  const { fields, filters, condition, problem, onFilters, onCondition } = props;
  const [isAdding, setAdding] = useState(false);
  const [typed, setTyped] = useState(condition);
  useEffect(() => setTyped(condition), [condition]);
  return (
    <section class="explore-filters" aria-label="Filters">
      <div class="explore-filter-line">
        {filters.length > 0 && (
          <ul class="chips" aria-label="Filters that apply">
            {filters.map((filter) => (
              <li key={fieldKey(filter) + filter.op + filter.value} class="chip">
                <span class="chip-text">{filterTitle(filter)}</span>
                <button
                  type="button"
                  class="chip-remove"
                  aria-label={`Remove the filter ${filterTitle(filter)}`}
                  onClick={() => onFilters(filters.filter((one) => one !== filter))}
                >
                  ×
                </button>
              </li>
            ))}
          </ul>
        )}
        <Button icon="plus" isPressed={isAdding} onClick={() => setAdding(!isAdding)}>
          Filter
        </Button>
        <form
          class="explore-condition"
          onSubmit={(event) => {
            event.preventDefault();
            onCondition(typed.trim());
          }}
        >
          <Field
            label="Condition in SQL"
            isLabelHidden
            isMonospaced
            placeholder="A condition in SQL: ms > 100 AND body LIKE '%time%'"
            value={typed}
            onInput={setTyped}
            error={problem}
          />
          <Button type="submit" isDisabled={typed.trim() === condition} reason="This condition applies already.">
            Apply
          </Button>
        </form>
      </div>
      {isAdding && (
        <NewFilter
          fields={fields}
          onAdd={(filter) => {
            onFilters(withFilter(filters, filter));
            setAdding(false);
          }}
        />
      )}
    </section>
  );
}

type NewFilterProps = { fields: readonly FieldPath[]; onAdd: (filter: Filter) => void };

const OPERATOR_TITLES: Readonly<Record<Operator, string>> = {
  "=": "is",
  "!=": "is not",
  contains: "contains",
  ">": "is above",
  "<": "is below",
  exists: "exists",
  missing: "is missing",
};

function NewFilter({ fields, onAdd }: NewFilterProps): JSX.Element {
  const [key, setKey] = useState(() =>
    fieldKey(fields.find(({ column }) => column !== "at") ?? { column: "at", keys: [] }),
  );
  const [op, setOp] = useState<Operator>("=");
  const [value, setValue] = useState("");
  return (
    <form
      class="explore-new-filter"
      onSubmit={(event) => {
        event.preventDefault();
        const field = fields.find((one) => fieldKey(one) === key);
        if (field !== undefined) onAdd({ ...field, op, value: takesValue(op) ? value : "" });
      }}
    >
      <Combobox
        label="Field"
        value={key}
        options={fields.map((field) => ({ value: fieldKey(field), title: fieldTitle(field) }))}
        onChange={setKey}
      />
      <Select
        label="Comparison"
        value={op}
        options={OPERATORS.map((one) => ({ value: one, title: OPERATOR_TITLES[one] }))}
        onChange={setOp}
      />
      {takesValue(op) && <Field label="Value" value={value} onInput={setValue} />}
      <Button look="primary" type="submit">
        Add
      </Button>
    </form>
  );
}

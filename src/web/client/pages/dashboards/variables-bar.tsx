import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { clock } from "../../base/clock.ts";
import { Button } from "../../components/button.tsx";
import { Combobox } from "../../components/combobox.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Icon } from "../../components/icons.tsx";
import { Field } from "../../components/field.tsx";
import type { ParameterValue } from "./parameters.ts";
import type { VariableState } from "./use-variables.ts";
import { isMulti, titleOf } from "./variables.ts";

type VariablesBarProps = {
  states: readonly VariableState[];
  onChoose: (name: string, value: ParameterValue) => void;
};

export function VariablesBar({ states, onChoose }: VariablesBarProps): JSX.Element | null {
  if (states.length === 0) return null;
  return (
    <div class="variables" role="group" aria-label="Variables">
      {states.map((state) => (
        <VariableField
          key={state.variable.name}
          state={state}
          onChoose={(value) => onChoose(state.variable.name, value)}
        />
      ))}
    </div>
  );
}

type VariableFieldProps = { state: VariableState; onChoose: (value: ParameterValue) => void };

function VariableField({ state, onChoose }: VariableFieldProps): JSX.Element {
  const { variable, value, options } = state;
  const title = titleOf(variable);
  if (variable.type === "text") return <TextVariable title={title} value={asText(value)} onChoose={onChoose} />;
  if ("error" in options) {
    return (
      <p class="variable-problem" role="alert">
        <strong>{title}</strong>: {options.error.message}
      </p>
    );
  }
  const values = "values" in options ? options.values : [];
  if (isMulti(variable)) {
    return <MultiVariable title={title} values={values} chosen={asList(value)} onChoose={onChoose} />;
  }
  const now = asText(value);
  const all = value === undefined || values.includes(now) ? values : [now, ...values];
  return (
    <Combobox
      label={title}
      value={now}
      options={all.map((one) => ({ value: one, title: one === "" ? "(empty)" : one }))}
      onChange={onChoose}
      placeholder={"values" in options ? "No values" : "Reading…"}
    />
  );
}

function asText(value: ParameterValue | undefined): string {
  return typeof value === "string" ? value : "";
}

function asList(value: ParameterValue | undefined): readonly string[] {
  return value === undefined ? [] : typeof value === "string" ? [value] : value;
}

const TYPED_AFTER_MS = 500;

/** What is typed counts after a moment, or with Enter. */
function TextVariable(props: { title: string; value: string; onChoose: (value: string) => void }): JSX.Element {
  const { title, value, onChoose } = props;
  const [typed, setTyped] = useState(value);
  // Another variable may change while the timer runs: an older `onChoose` would write its previous value back.
  const latest = useRef(onChoose);
  latest.current = onChoose;
  useEffect(() => setTyped(value), [value]);
  useEffect(
    () => (typed === value ? undefined : clock.after(TYPED_AFTER_MS, () => latest.current(typed))),
    [typed, value],
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (typed !== value) onChoose(typed);
      }}
    >
      <Field label={title} value={typed} onInput={setTyped} />
    </form>
  );
}

type MultiVariableProps = {
  title: string;
  values: readonly string[];
  chosen: readonly string[];
  onChoose: (value: readonly string[]) => void;
};

const MOST_NAMED = 2;

function MultiVariable({ title, values, chosen, onChoose }: MultiVariableProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const more = chosen.length - MOST_NAMED;
  const named = chosen.slice(0, MOST_NAMED).join(", ");
  const text = chosen.length === 0 ? "None" : more > 0 ? `${named} and ${more} more` : named;
  return (
    <div class="field">
      <span class="field-label" aria-hidden="true">
        {title}
      </span>
      <Button label={`${title}: ${text}`} onClick={() => setOpen(true)}>
        <span class="variable-values">{text}</span>
        <Icon name="down" size={14} />
      </Button>
      {isOpen && (
        <ValuesDialog
          title={title}
          values={[...new Set([...values, ...chosen])]}
          chosen={chosen}
          onChoose={onChoose}
          onClose={() => setOpen(false)}
        />
      )}
    </div>
  );
}

const MOST_SHOWN = 200;

function ValuesDialog(props: MultiVariableProps & { onClose: () => void }): JSX.Element {
  const { title, values, onChoose, onClose } = props;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(props.chosen));
  const [search, setSearch] = useState("");
  const found = values.filter((value) => value.toLowerCase().includes(search.toLowerCase()));
  const toggle = (value: string, isChosen: boolean) => {
    const next = new Set(chosen);
    if (isChosen) next.add(value);
    else next.delete(value);
    setChosen(next);
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={() => setChosen(new Set(values))}>All</Button>
          <Button onClick={() => setChosen(new Set())}>None</Button>
          <Button
            look="primary"
            onClick={() => {
              onChoose(values.filter((value) => chosen.has(value)));
              onClose();
            }}
          >
            Choose
          </Button>
        </>
      }
    >
      {values.length > 10 && <Field label="Find" type="search" value={search} onInput={setSearch} />}
      <ul class="value-list">
        {found.slice(0, MOST_SHOWN).map((value) => (
          <li key={value}>
            <label class="choice">
              <input
                type="checkbox"
                checked={chosen.has(value)}
                onChange={(event) => toggle(value, event.currentTarget.checked)}
              />
              <span>{value === "" ? "(empty)" : value}</span>
            </label>
          </li>
        ))}
      </ul>
      {found.length > MOST_SHOWN && <p class="panel-more">{found.length - MOST_SHOWN} more: find them by a part.</p>}
    </Dialog>
  );
}

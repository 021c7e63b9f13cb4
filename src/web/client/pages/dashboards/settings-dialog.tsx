import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Select } from "../../components/field.tsx";
import { clock } from "../../base/clock.ts";
import { isSame, type Content, type Settings, type Variable } from "./document.ts";
import { LinesField } from "./lines-field.tsx";
import { newQuery, QueryFields } from "./query-fields.tsx";
import { problemOf, writtenMoment } from "./time-range.ts";
import { problemOfVariable } from "./variables.ts";

const MOST_VARIABLES = 50;

type SettingsDialogProps = {
  content: Content;
  database: string;
  onDone: (content: Pick<Content, "name" | "description" | "settings">) => void;
  onClose: () => void;
};

/** What is not a panel: the name, what everybody sees at first, and the variables. */
export function SettingsDialog({ content, database, onDone, onClose }: SettingsDialogProps): JSX.Element {
  const before = {
    name: content.name,
    description: content.description ?? "",
    from: content.settings.time?.from ?? "",
    to: content.settings.time?.to ?? "",
    refresh: content.settings.refresh_secs === null ? "" : String(content.settings.refresh_secs),
    variables: content.settings.variables.map((variable, id) => ({ id, variable })),
  };
  const [now, setNow] = useState(before);
  const [isShown, setShown] = useState(false);
  const isChanged = !isSame(now, before);
  const { time, problem } = writtenTime(now);
  const names = now.variables.map(({ variable }) => variable.name);
  const problems = now.variables.map(({ variable }) => problemOfVariable(variable, names));
  const refresh = now.refresh.trim() === "" ? null : Number(now.refresh);
  const isRefreshGood = refresh === null || (Number.isInteger(refresh) && refresh >= 5 && refresh <= 86_400);
  const isGood =
    now.name.trim() !== "" && problem === undefined && isRefreshGood && problems.every((one) => one === undefined);
  const done = () => {
    setShown(true);
    if (!isGood) return;
    const description = now.description.trim() === "" ? null : now.description;
    const settings: Settings = {
      variables: now.variables.map(({ variable }) => variable),
      time,
      refresh_secs: refresh,
    };
    onDone({ name: now.name.trim(), description, settings });
  };
  const change = (part: Partial<typeof now>) => setNow((all) => ({ ...all, ...part }));
  return (
    <Dialog
      title="Settings of the dashboard"
      width="wide"
      onClose={onClose}
      isClosable={!isChanged}
      actions={
        <>
          <Button onClick={onClose}>{isChanged ? "Discard" : "Cancel"}</Button>
          <Button look="primary" onClick={done}>
            Apply
          </Button>
        </>
      }
    >
      <Field
        label="Name"
        value={now.name}
        onInput={(name) => change({ name })}
        error={isShown && now.name.trim() === "" ? "It needs a name." : undefined}
      />
      <LinesField
        label="Description"
        rows={2}
        value={now.description}
        onInput={(description) => change({ description: description.slice(0, 2_000) })}
      />
      <div class="panel-fields">
        <Field
          label="From"
          value={now.from}
          placeholder="now-6h"
          onInput={(from) => change({ from })}
          error={isShown ? problem?.from : undefined}
          hint="The range that everybody sees at first."
        />
        <Field
          label="To"
          value={now.to}
          placeholder="now"
          onInput={(to) => change({ to })}
          error={isShown ? problem?.to : undefined}
        />
        <Field
          label="Run again every … seconds"
          type="number"
          value={now.refresh}
          onInput={(value) => change({ refresh: value })}
          error={isShown && !isRefreshGood ? "From 5 to 86,400 seconds, or nothing." : undefined}
        />
      </div>
      <section class="stack" aria-label="Variables">
        <h3>Variables</h3>
        {now.variables.map(({ id, variable }, index) => (
          <VariableFields
            key={id}
            variable={variable}
            number={index + 1}
            database={database}
            problem={isShown ? problems[index] : undefined}
            onChange={(changed) =>
              change({ variables: now.variables.map((one) => (one.id === id ? { id, variable: changed } : one)) })
            }
            onRemove={() => change({ variables: now.variables.filter((one) => one.id !== id) })}
          />
        ))}
        <div>
          <Button
            icon="plus"
            isDisabled={now.variables.length >= MOST_VARIABLES}
            reason={`A dashboard has up to ${MOST_VARIABLES} variables.`}
            onClick={() => {
              const id = Math.max(-1, ...now.variables.map((one) => one.id)) + 1;
              change({ variables: [...now.variables, { id, variable: { name: "", type: "list", values: [""] } }] });
            }}
          >
            Add a variable
          </Button>
        </div>
      </section>
    </Dialog>
  );
}

function writtenTime({ from, to }: { from: string; to: string }): {
  time: Settings["time"];
  problem: ReturnType<typeof problemOf>;
} {
  if (from.trim() === "" && to.trim() === "") return { time: null, problem: undefined };
  const time = { from: writtenMoment(from), to: writtenMoment(to) };
  return { time, problem: problemOf(time, clock.nowMs()) };
}

type VariableFieldsProps = {
  variable: Variable;
  number: number;
  database: string;
  problem: string | undefined;
  onChange: (variable: Variable) => void;
  onRemove: () => void;
};

const TYPES = [
  { value: "query", title: "Query: the first column of its rows" },
  { value: "list", title: "List of values" },
  { value: "text", title: "Text to type" },
  { value: "interval", title: "Interval" },
] as const;

function VariableFields(props: VariableFieldsProps): JSX.Element {
  const { variable, number, database, problem, onChange, onRemove } = props;
  const text = typeof variable.default === "string" ? variable.default : (variable.default ?? []).join("\n");
  return (
    <fieldset class="variable-fields">
      <legend>{variable.name === "" ? `Variable ${number}` : `$${variable.name}`}</legend>
      {problem !== undefined && (
        <p class="field-error" role="alert">
          {problem}
        </p>
      )}
      <div class="panel-fields">
        <Field
          label="Name"
          value={variable.name}
          onInput={(name) => onChange({ ...variable, name: name.slice(0, 64) })}
          hint={`In queries: $${variable.name === "" ? "name" : variable.name}`}
        />
        <Field
          label="Label"
          value={variable.label ?? ""}
          onInput={(label) => onChange(withLabel(variable, label.slice(0, 200)))}
        />
        <Select
          label="Kind"
          value={variable.type}
          options={TYPES}
          onChange={(type) => onChange(ofType(variable, type, database))}
        />
        <Field
          label="Default"
          value={text}
          onInput={(value) => onChange(withDefault(variable, value))}
          hint={variable.type === "text" ? undefined : "Nothing: the first of its values."}
        />
      </div>
      {variable.type === "query" && (
        <QueryFields
          label={`Query of variable ${number}`}
          query={variable.query}
          onChange={(query) => onChange({ ...variable, query })}
        />
      )}
      {(variable.type === "list" || variable.type === "interval") && (
        <LinesField
          label="Values, one on each line"
          rows={4}
          value={variable.values.join("\n")}
          onInput={(values) => onChange({ ...variable, values: values.split("\n").slice(0, 1_000) })}
          hint={
            variable.type === "interval"
              ? "30s, 5m, 1h, 1d; auto follows the range. In SQL: $name::INTERVAL"
              : undefined
          }
        />
      )}
      <div class="row">
        {(variable.type === "list" || variable.type === "query") && (
          <label class="choice">
            <input
              type="checkbox"
              checked={variable.multi === true}
              onChange={(event) => onChange(withMulti(variable, event.currentTarget.checked))}
            />
            <span>Several values may be chosen: then it is a list, as in IN ${variable.name}</span>
          </label>
        )}
        <Button look="quiet" icon="trash" onClick={onRemove}>
          Remove
        </Button>
      </div>
    </fieldset>
  );
}

function withLabel(variable: Variable, label: string): Variable {
  const { label: _before, ...others } = variable;
  return label === "" ? others : { ...others, label };
}

function withDefault(variable: Variable, value: string): Variable {
  const { default: _before, ...others } = variable;
  return value === "" ? others : { ...others, default: value };
}

/** A default of several values is for a variable that has several. */
function withMulti(variable: Extract<Variable, { multi?: unknown }>, isMulti: boolean): Variable {
  const { multi: _before, default: byDefault, ...others } = variable;
  const first = Array.isArray(byDefault) && !isMulti ? byDefault[0] : byDefault;
  return { ...others, ...(isMulti && { multi: true }), ...(first !== undefined && { default: first }) };
}

function ofType({ name, label }: Variable, type: Variable["type"], database: string): Variable {
  const common = { name, ...(label !== undefined && { label }) };
  switch (type) {
    case "query":
      return { ...common, type, query: newQuery(database) };
    case "text":
      return { ...common, type };
    case "list":
      return { ...common, type, values: [""] };
    case "interval":
      return { ...common, type, values: ["auto", "1m", "5m", "1h", "1d"] };
  }
}

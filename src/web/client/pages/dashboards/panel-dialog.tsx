import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Select } from "../../components/field.tsx";
import { isSame, knownType, panelName, PANEL_TYPES, textOption, type Panel, type PanelQuery } from "./document.ts";
import { LinesField } from "./lines-field.tsx";
import { newQuery, QueryFields } from "./query-fields.tsx";
import { CALCULATIONS } from "./rows.ts";

const MOST_QUERIES = 4;

type PanelDialogProps = {
  panel: Panel;
  isNew: boolean;
  database: string;
  /** What queries may name, besides the range. */
  names: readonly string[];
  onDone: (panel: Panel) => void;
  onClose: () => void;
};

/** The title, type, queries and options of a panel. What is changed here is in the dashboard only once it is applied. */
export function PanelDialog(props: PanelDialogProps): JSX.Element {
  const { isNew, database, names, onDone, onClose } = props;
  const [panel, setPanel] = useState(props.panel);
  const type = knownType(panel.type);
  const isChanged = !isSame(panel, props.panel);
  const change = (part: Partial<Panel>) => setPanel((now) => ({ ...now, ...part }));
  const types: readonly { value: string; title: string }[] =
    type === undefined ? [...PANEL_TYPES, { value: panel.type, title: `${panel.type} (not drawn here)` }] : PANEL_TYPES;
  const done = () => {
    // The API takes no query without a text.
    onDone({ ...panel, queries: panel.queries.filter(({ text }) => text.trim() !== "") });
  };
  return (
    <Dialog
      title={isNew ? "New panel" : `Edit ${panelName(props.panel)}`}
      width="wide"
      onClose={onClose}
      // What is typed is not lost by a click beside it.
      isClosable={!isChanged}
      actions={
        <>
          <Button onClick={onClose}>{isChanged ? "Discard" : "Cancel"}</Button>
          <Button look="primary" onClick={done}>
            {isNew ? "Add the panel" : "Apply"}
          </Button>
        </>
      }
    >
      <div class="panel-fields">
        <Field label="Title" value={panel.title} onInput={(title) => change({ title: title.slice(0, 200) })} />
        <Select label="Type" value={panel.type} options={types} onChange={(chosen) => change({ type: chosen })} />
      </div>
      <PanelOptions panel={panel} onChange={(options) => change({ options })} />
      {type !== "text" && (
        <Queries
          queries={panel.queries}
          database={database}
          names={names}
          onChange={(queries) => change({ queries })}
        />
      )}
    </Dialog>
  );
}

type QueriesProps = {
  queries: readonly PanelQuery[];
  database: string;
  names: readonly string[];
  onChange: (queries: readonly PanelQuery[]) => void;
};

function Queries({ queries, database, names, onChange }: QueriesProps): JSX.Element {
  // An id for each, so that an editor keeps its text when one before it goes.
  const [ids, setIds] = useState<readonly number[]>(() => queries.map((_query, i) => i));
  const add = () => {
    setIds([...ids, Math.max(-1, ...ids) + 1]);
    onChange([...queries, newQuery(queries.at(-1)?.database ?? database)]);
  };
  const remove = (index: number) => {
    setIds(ids.filter((_id, i) => i !== index));
    onChange(queries.filter((_query, i) => i !== index));
  };
  return (
    <section class="stack" aria-label="Queries">
      <p class="field-hint">
        In SQL <code>$from</code> and <code>$to</code> are the ends of the time range.
        {names.length > 0 && " Variables: "}
        {names.map((name, index) => (
          <span key={name}>
            {index > 0 && ", "}
            <code>${name}</code>
          </span>
        ))}
        {names.length > 0 && "."} Values are sent beside the text, as literals.
      </p>
      {queries.map((query, index) => (
        <div key={ids[index]} class="panel-query">
          <QueryFields
            label={`Query ${index + 1}`}
            query={query}
            onChange={(changed) => onChange(queries.map((one, i) => (i === index ? changed : one)))}
          />
          <Button look="quiet" icon="trash" label={`Remove query ${index + 1}`} onClick={() => remove(index)} />
        </div>
      ))}
      <div>
        <Button
          icon="plus"
          isDisabled={queries.length >= MOST_QUERIES}
          reason={`A panel has up to ${MOST_QUERIES} queries.`}
          onClick={add}
        >
          Add a query
        </Button>
      </div>
    </section>
  );
}

type PanelOptionsProps = { panel: Panel; onChange: (options: Panel["options"]) => void };

/** Those of the type. Others that the panel has stay: another program may know them. */
function PanelOptions({ panel, onChange }: PanelOptionsProps): JSX.Element | null {
  const type = knownType(panel.type);
  const set = (name: string, value: string) => {
    const { [name]: _before, ...others } = panel.options;
    onChange(value === "" ? others : { ...others, [name]: value });
  };
  if (type === "text") {
    return (
      <LinesField
        label="Text"
        rows={10}
        value={textOption(panel, "text")}
        onInput={(text) => set("text", text)}
        hint="Markdown: headings, lists, bold, italics, code and links."
      />
    );
  }
  if (type === undefined || type === "table" || type === "logs") return null;
  return (
    <div class="panel-fields">
      <Field
        label="Unit"
        value={textOption(panel, "unit")}
        onInput={(unit) => set("unit", unit)}
        hint="bytes, ms, s, %, or any other text"
      />
      {type === "timeseries" && (
        <Select
          label="Look"
          value={textOption(panel, "look") === "" ? "lines" : textOption(panel, "look")}
          options={[
            { value: "lines", title: "Lines" },
            { value: "areas", title: "Areas" },
            { value: "bars", title: "Bars" },
          ]}
          onChange={(look) => set("look", look === "lines" ? "" : look)}
        />
      )}
      {type === "stat" && (
        <Select
          label="Value"
          value={CALCULATIONS.find((one) => one === textOption(panel, "calculation")) ?? "last"}
          options={CALCULATIONS.map((one) => ({ value: one, title: one }))}
          onChange={(one) => set("calculation", one === "last" ? "" : one)}
        />
      )}
    </div>
  );
}

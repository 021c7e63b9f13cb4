import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { usePageAddress, useSchema, type Table } from "../../base/schema.ts";
import { Button } from "../../components/button.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Field } from "../../components/field.tsx";
import { Icon } from "../../components/icons.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { quotedIfNeeded } from "./quoted.ts";

type SchemaTreeProps = { database: string; onInsert: (text: string) => void; onLook: (table: string) => void };

/** Of each level at once: more are found by typing. */
const MOST_SHOWN = 300;

/** Tables of the database and their columns; a click writes the name where the cursor is. */
export function SchemaTree({ database, onInsert, onLook }: SchemaTreeProps): JSX.Element {
  const schema = useSchema();
  const addressOf = usePageAddress();
  const [text, setText] = useState("");
  const wanted = text.toLowerCase();
  const tables = schema.data?.find(({ name }) => name.toLowerCase() === database.toLowerCase())?.tables ?? [];
  const found = tables.filter(
    ({ name, columns }) =>
      name.toLowerCase().includes(wanted) ||
      (wanted.length > 1 && columns.some((column) => column.name.toLowerCase().includes(wanted))),
  );
  if (schema.error !== null) {
    return (
      <ErrorBox title="The tables could not be read." error={schema.error} onRetry={() => void schema.refetch()} />
    );
  }
  if (schema.data === undefined) return <Spinner label="Reading the tables…" />;
  return (
    <nav class="schema" aria-label={`Tables of ${database}`}>
      <Field
        label="Find a table or column"
        isLabelHidden
        type="search"
        placeholder="Find a table or column"
        value={text}
        onInput={setText}
      />
      {tables.length === 0 && (
        <p class="schema-none">
          The database {database} has no tables. A table is made by the first rows that are sent to it:{" "}
          <a href={addressOf("")}>the overview</a> says how.
        </p>
      )}
      <ul class="schema-tables">
        {found.slice(0, MOST_SHOWN).map((table) => (
          <TableView key={table.name} table={table} wanted={wanted} onInsert={onInsert} onLook={onLook} />
        ))}
      </ul>
    </nav>
  );
}

type TableViewProps = {
  table: Table;
  wanted: string;
  onInsert: (text: string) => void;
  onLook: (table: string) => void;
};

function TableView({ table: { name, columns }, wanted, onInsert, onLook }: TableViewProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const matching = columns.filter((column) => column.name.toLowerCase().includes(wanted));
  const isFound = wanted !== "" && matching.length > 0 && !name.toLowerCase().includes(wanted);
  const shown = isFound ? matching : columns;
  return (
    <li>
      <div class="schema-table">
        <button
          type="button"
          class="schema-toggle"
          aria-expanded={isOpen || isFound}
          aria-label={`Columns of ${name}`}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen || isFound ? "down" : "right"} size={12} />
        </button>
        <button type="button" class="schema-name mono" onClick={() => onInsert(quotedIfNeeded(name))}>
          {name}
        </button>
        <Button look="quiet" icon="play" label={`Look at ${name}`} onClick={() => onLook(name)} />
      </div>
      {(isOpen || isFound) && (
        <ul class="schema-columns">
          {shown.slice(0, MOST_SHOWN).map((column) => (
            <li key={column.name}>
              <button type="button" class="schema-name mono" onClick={() => onInsert(quotedIfNeeded(column.name))}>
                {column.name}
              </button>
              <small>{column.type}</small>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field } from "../../components/field.tsx";
import type { ResultColumn } from "../../results/result-store.ts";

type ColumnsDialogProps = {
  columns: readonly ResultColumn[];
  hidden: ReadonlySet<number>;
  onChange: (hidden: ReadonlySet<number>) => void;
  onClose: () => void;
};

const MOST_SHOWN = 300;

/** Which columns the grid shows. */
export function ColumnsDialog({ columns, hidden, onChange, onClose }: ColumnsDialogProps): JSX.Element {
  const [text, setText] = useState("");
  const wanted = text.toLowerCase();
  const found = columns
    .map((column, i) => ({ ...column, i }))
    .filter(({ name }) => name.toLowerCase().includes(wanted));
  const toggle = (i: number): void => {
    const next = new Set(hidden);
    if (!next.delete(i)) next.add(i);
    onChange(next);
  };
  return (
    <Dialog
      title="Columns"
      onClose={onClose}
      actions={
        <>
          <Button onClick={() => onChange(new Set())}>Show all</Button>
          <Button
            onClick={() =>
              onChange(new Set(columns.map((_column, i) => i).filter((i) => !found.some((one) => one.i === i))))
            }
          >
            Only those found
          </Button>
        </>
      }
    >
      <Field label="Find a column" type="search" value={text} onInput={setText} />
      <ul class="column-list">
        {found.slice(0, MOST_SHOWN).map(({ i, name, type }) => (
          <li key={i}>
            <label>
              <input type="checkbox" checked={!hidden.has(i)} onChange={() => toggle(i)} />
              <span class="mono">{name}</span> <small>{type}</small>
            </label>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

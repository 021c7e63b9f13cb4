import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { Labelled } from "../../components/field.tsx";

type LinesFieldProps = {
  label: string;
  value: string;
  onInput: (value: string) => void;
  rows: number;
  hint?: ComponentChildren;
  error?: string | undefined;
};

/** A text of several lines with its label. */
export function LinesField({ label, value, onInput, rows, hint, error }: LinesFieldProps): JSX.Element {
  const id = useId();
  return (
    <Labelled id={id} label={label} hint={hint} error={error}>
      <textarea
        id={id}
        class="input lines"
        rows={rows}
        value={value}
        spellcheck={false}
        aria-invalid={error === undefined ? undefined : "true"}
        aria-describedby={hint === undefined && error === undefined ? undefined : `${id}-note`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </Labelled>
  );
}

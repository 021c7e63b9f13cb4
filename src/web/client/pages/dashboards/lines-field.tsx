import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

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
  const note = error ?? hint;
  return (
    <div class="field">
      <label class="field-label" for={id}>
        {label}
      </label>
      <textarea
        id={id}
        class="input lines"
        rows={rows}
        value={value}
        spellcheck={false}
        aria-invalid={error === undefined ? undefined : "true"}
        aria-describedby={note === undefined ? undefined : `${id}-note`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {note !== undefined && (
        <p id={`${id}-note`} class={error === undefined ? "field-hint" : "field-error"}>
          {note}
        </p>
      )}
    </div>
  );
}

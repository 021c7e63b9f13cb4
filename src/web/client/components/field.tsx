import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

type Common = {
  label: string;
  hint?: ComponentChildren;
  /** What is wrong with the value. */
  error?: string | undefined;
  isLabelHidden?: boolean;
  class?: string;
};

export type FieldProps = Common & {
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "password" | "search" | "number" | "url" | "email";
  name?: string;
  autocomplete?: string;
  placeholder?: string;
  isRequired?: boolean;
  isDisabled?: boolean;
  isMonospaced?: boolean;
  inputRef?: (input: HTMLInputElement | null) => void;
};

/** A line of text with its label. */
export function Field(props: FieldProps): JSX.Element {
  const id = useId();
  const { label, hint, error, value, onInput, type = "text", isMonospaced = false, inputRef } = props;
  return (
    <Labelled id={id} {...props} label={label} hint={hint} error={error}>
      <input
        id={id}
        class={isMonospaced ? "input mono" : "input"}
        {...({ type } as { type: "text" })}
        name={props.name}
        value={value}
        placeholder={props.placeholder}
        autocomplete={props.autocomplete ?? "off"}
        spellcheck={false}
        required={props.isRequired}
        disabled={props.isDisabled}
        aria-invalid={error === undefined ? undefined : "true"}
        aria-describedby={hint === undefined && error === undefined ? undefined : `${id}-note`}
        {...(inputRef !== undefined && { ref: inputRef })}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </Labelled>
  );
}

export type SelectProps<T extends string> = Common & {
  value: T;
  options: readonly { value: T; title: string }[];
  onChange: (value: T) => void;
  isDisabled?: boolean;
};

/** One of some, where all fit on a screen; else `Combobox`. */
export function Select<T extends string>(props: SelectProps<T>): JSX.Element {
  const id = useId();
  const { value, options, onChange, hint, error } = props;
  return (
    <Labelled id={id} {...props}>
      <select
        id={id}
        class="input"
        value={value}
        disabled={props.isDisabled}
        aria-describedby={hint === undefined && error === undefined ? undefined : `${id}-note`}
        onChange={(event) => {
          const chosen = options.find((option) => option.value === event.currentTarget.value);
          if (chosen !== undefined) onChange(chosen.value);
        }}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.title}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

type LabelledProps = Common & { id: string; children: ComponentChildren };

/** An input with its label, and below it its hint or what is wrong. */
export function Labelled({
  id,
  label,
  hint,
  error,
  isLabelHidden = false,
  children,
  ...props
}: LabelledProps): JSX.Element {
  return (
    <div class={`field${props.class === undefined ? "" : ` ${props.class}`}`}>
      <label class={isLabelHidden ? "unseen" : "field-label"} for={id}>
        {label}
      </label>
      {children}
      {(error ?? hint) !== undefined && (
        <p id={`${id}-note`} class={error === undefined ? "field-hint" : "field-error"}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

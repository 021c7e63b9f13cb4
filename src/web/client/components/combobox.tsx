import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { lazyPart, usePart, whenIdle } from "../base/lazy-part.ts";
import type { ComboboxProps } from "./combobox-props.ts";
import { Select } from "./field.tsx";

const part = lazyPart(async () => (await import("./combobox-machine.tsx")).ComboboxMachine);

/**
 * One of many, found by typing. The machine behind it (Zag) is loaded while the browser is idle; until then, and where it
 * does not load, the browser's own list stands in.
 */
export function Combobox(props: ComboboxProps): JSX.Element {
  const [isWanted, setWanted] = useState(false);
  useEffect(() => whenIdle(() => setWanted(true)), []);
  const { part: Machine } = usePart(part, isWanted);
  if (Machine !== undefined) return <Machine {...props} />;
  const { label, isLabelHidden = false, value, options, onChange } = props;
  const isKnown = options.some((option) => option.value === value);
  return (
    <Select
      label={label}
      isLabelHidden={isLabelHidden}
      value={value}
      options={isKnown ? options : [{ value, title: value }, ...options]}
      onChange={onChange}
      {...(props.class !== undefined && { class: props.class })}
    />
  );
}

import * as combobox from "@zag-js/combobox";
import { normalizeProps, useMachine } from "@zag-js/preact";
import type { JSX } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import type { ComboboxProps } from "./combobox-props.ts";
import { Icon } from "./icons.tsx";

/** Zag types its properties for older types of Preact, which know no input by its role. */
type InputProps = Record<string, unknown>;

/** More are found by typing: a list of thousands is slow to draw and of no use to read. */
const MOST_SHOWN = 200;

/** The combobox itself: see `Combobox`. */
export function ComboboxMachine(props: ComboboxProps): JSX.Element {
  const { label, isLabelHidden = false, value, options, onChange, placeholder } = props;
  const id = useId();
  const [typed, setTyped] = useState("");
  const shown = useMemo(() => {
    const wanted = typed.toLowerCase();
    return options.filter(({ title }) => title.toLowerCase().includes(wanted)).slice(0, MOST_SHOWN);
  }, [options, typed]);
  const collection = combobox.collection({
    items: shown,
    itemToValue: (item) => item.value,
    itemToString: (item) => item.title,
  });
  const service = useMachine(combobox.machine, {
    id,
    collection,
    value: [value],
    inputValue: undefined,
    openOnClick: true,
    selectionBehavior: "replace",
    inputBehavior: "autohighlight",
    positioning: { strategy: "fixed", placement: "bottom-start", sameWidth: false },
    onOpenChange: () => setTyped(""),
    onInputValueChange: ({ inputValue, reason }) => setTyped(reason === "input-change" ? inputValue : ""),
    onValueChange: ({ value: [chosen] }: { value: string[] }) => {
      if (chosen !== undefined && chosen !== value) onChange(chosen);
    },
  });
  const api = combobox.connect(service, normalizeProps);
  return (
    <div {...api.getRootProps()} class={`field combobox${props.class === undefined ? "" : ` ${props.class}`}`}>
      <label {...api.getLabelProps()} class={isLabelHidden ? "unseen" : "field-label"}>
        {label}
      </label>
      <div {...api.getControlProps()} class="combobox-control">
        <input {...(api.getInputProps() as InputProps)} class="input" placeholder={placeholder} spellcheck={false} />
        <button {...api.getTriggerProps()} class="combobox-trigger" aria-label={`${label}: show all`}>
          <Icon name="down" size={14} />
        </button>
      </div>

      <div {...api.getPositionerProps()}>
        <ul {...api.getContentProps()} class="menu">
          {shown.map((item) => (
            <li key={item.value} {...api.getItemProps({ item })} class="menu-item">
              <span>{item.title}</span>
              {item.value === value && <Icon name="check" size={15} />}
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

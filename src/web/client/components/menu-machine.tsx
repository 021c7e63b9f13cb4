import * as menu from "@zag-js/menu";
import { normalizeProps, useMachine } from "@zag-js/preact";
import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";
import { menuButtonClass, type MenuProps } from "./menu-props.ts";

type MenuMachineProps = MenuProps & {
  isOpenAtFirst: boolean;
  /** Whether the button that it replaces has the focus. */
  isFocusedAtFirst: boolean;
};

/** The menu itself: see `Menu`. It replaces the button that stood in for it. */
export function MenuMachine(props: MenuMachineProps): JSX.Element {
  const { label, children, items, head, isOpenAtFirst, isFocusedAtFirst } = props;
  const id = useId();
  const trigger = useRef<HTMLButtonElement>(null);
  const service = useMachine(menu.machine, {
    id,
    "aria-label": label,
    positioning: { strategy: "fixed", placement: "bottom-end", gutter: 6 },
    onSelect: ({ value }: { value: string }) => items.find((item) => item.id === value)?.run(),
  });
  const api = menu.connect(service, normalizeProps);
  const { setOpen } = api;
  useEffect(() => {
    if (isFocusedAtFirst) trigger.current?.focus();
    if (isOpenAtFirst) setOpen(true);
    // Once: afterwards the machine knows.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  return (
    <>
      <button {...api.getTriggerProps()} ref={trigger} class={menuButtonClass(props)} aria-label={label}>
        {children}
        <Icon name="down" size={14} />
      </button>

      <div {...api.getPositionerProps()}>
        <div {...api.getContentProps()} class="menu">
          {head !== undefined && <div class="menu-head">{head}</div>}
          {items.map((item) => (
            <div key={item.id}>
              {item.heading !== undefined && <p class="menu-heading">{item.heading}</p>}
              <div {...api.getItemProps({ value: item.id })} class="menu-item">
                {item.icon !== undefined && <Icon name={item.icon} />}
                <span>{item.title}</span>
                {item.isChosen === true && <Icon name="check" size={15} />}
              </div>
            </div>
          ))}
        </div>
      </div>
    </>
  );
}

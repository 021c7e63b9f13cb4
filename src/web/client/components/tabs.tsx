import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

export type TabsProps<T extends string> = {
  /** What the tabs are of. */
  label: string;
  tabs: readonly { id: T; title: ComponentChildren }[];
  selected: T;
  onSelect: (id: T) => void;
  /** What the selected tab shows. */
  children: ComponentChildren;
};

/** Arrow keys, Home and End move between tabs (ARIA Authoring Practices, "Tabs"). */
export function Tabs<T extends string>({ label, tabs, selected, onSelect, children }: TabsProps<T>): JSX.Element {
  const id = useId();
  const select = (tab: T) => {
    onSelect(tab);
    document.getElementById(`${id}-${tab}`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const at = tabs.findIndex((tab) => tab.id === selected);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    const tab = next === undefined ? undefined : tabs[(next + tabs.length) % tabs.length];
    if (tab === undefined) return;
    event.preventDefault();
    select(tab.id);
  };
  return (
    <div class="tabs">
      <div class="tab-list" role="tablist" aria-label={label} onKeyDown={onKeyDown} tabIndex={-1}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            class="tab"
            role="tab"
            id={`${id}-${tab.id}`}
            aria-selected={tab.id === selected}
            aria-controls={`${id}-panel`}
            tabIndex={tab.id === selected ? 0 : -1}
            onClick={() => onSelect(tab.id)}
          >
            {tab.title}
          </button>
        ))}
      </div>
      <div class="tab-panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${selected}`}>
        {children}
      </div>
    </div>
  );
}

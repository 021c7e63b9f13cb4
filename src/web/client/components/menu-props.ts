import type { ComponentChildren } from "preact";
import type { IconName } from "./icons.tsx";

export type MenuItem = {
  id: string;
  title: string;
  icon?: IconName;
  /** Of a choice among several: whether it is the one. */
  isChosen?: boolean;
  /** Begins a group with this heading. */
  heading?: string | undefined;
  run: () => void;
};

export type MenuProps = {
  /** What the button is called. */
  label: string;
  /** What the button shows. */
  children: ComponentChildren;
  items: readonly MenuItem[];
  /** Shown above the items. */
  head?: ComponentChildren;
  class?: string;
};

/** The button looks the same before the machine is there and afterwards. */
export function menuButtonClass(props: MenuProps): string {
  return `button button-quiet${props.class === undefined ? "" : ` ${props.class}`}`;
}

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { lazyPart, usePart } from "../base/lazy-part.ts";
import { Icon } from "./icons.tsx";
import { menuButtonClass, type MenuProps } from "./menu-props.ts";

const part = lazyPart(async () => (await import("./menu-machine.tsx")).MenuMachine);

/**
 * A button that opens a menu. The machine behind it (Zag: keys, type-ahead, place) is loaded when somebody reaches for the
 * first one; until then a plain button stands in, which looks the same.
 */
export function Menu(props: MenuProps): JSX.Element {
  const [isWanted, setWanted] = useState(false);
  const [isOpened, setOpened] = useState(false);
  const hasFocus = useRef(false);
  const { part: Machine, hasFailed } = usePart(part, isWanted);
  if (Machine !== undefined) return <Machine {...props} isOpenAtFirst={isOpened} isFocusedAtFirst={hasFocus.current} />;
  return (
    <button
      type="button"
      class={menuButtonClass(props)}
      aria-label={props.label}
      aria-haspopup="menu"
      title={hasFailed ? "This part could not be loaded: reload the page" : undefined}
      onPointerEnter={() => setWanted(true)}
      onFocus={() => {
        hasFocus.current = true;
        setWanted(true);
      }}
      onBlur={() => (hasFocus.current = false)}
      onClick={() => {
        setOpened(true);
        setWanted(true);
        if (hasFailed) location.reload();
      }}
    >
      {props.children}
      <Icon name="down" size={14} />
    </button>
  );
}

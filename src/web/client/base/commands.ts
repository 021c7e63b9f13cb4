import { useEffect, useRef, useState } from "preact/hooks";
import { isTyping, pressOf } from "./hotkeys.ts";

/** Something that can be done here: in the palette (Mod-K), in the list of keys (`?`), and by its keys. */
export type Command = {
  id: string;
  title: string;
  /** The heading under which it is listed. */
  group: string;
  /** See `hotkeys.ts`. While something is typed only those with `Mod` count. */
  keys?: string | undefined;
  run: () => void;
};

const commands = new Map<string, Command>();
const listeners = new Set<() => void>();

/** Adds commands while the component is there. */
export function useCommands(own: readonly Command[]): void {
  const latest = useRef(own);
  latest.current = own;
  const shape = own.map(({ id, title, keys }) => `${id}\n${title}\n${keys ?? ""}`).join("\n\n");
  useEffect(() => {
    const ids = latest.current.map((command) => {
      // What it does is what the last draw says.
      const run = () => latest.current.find(({ id }) => id === command.id)?.run();
      commands.set(command.id, { ...command, run });
      return command.id;
    });
    changed();
    return () => {
      for (const id of ids) commands.delete(id);
      changed();
    };
  }, [shape]);
}

function changed(): void {
  for (const listener of listeners) listener();
}

/** All commands that there are now. */
export function useAllCommands(): Command[] {
  const [, draw] = useState(0);
  useEffect(() => {
    const listener = () => draw((count) => count + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return [...commands.values()];
}

/** Runs commands by their keys; `g q` is two presses, one after the other. Returns what ends it. */
export function listenForKeys(): () => void {
  let before = "";
  const onKey = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing || /^(Control|Shift|Alt|Meta)$/.test(event.key)) return;
    const press = pressOf(event);
    const isPressed = (keys: string | undefined) => keys === press || keys === `${before} ${press}`;
    const found = [...commands.values()].find(({ keys }) => isPressed(keys));
    before = press;
    if (found === undefined || (isTyping(event) && !press.startsWith("Mod-"))) return;
    // A dialog that is open has the keys.
    if (document.querySelector("dialog:modal") !== null) return;
    before = "";
    event.preventDefault();
    found.run();
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}

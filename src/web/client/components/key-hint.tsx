import type { JSX } from "preact";
import { shownKeys } from "../base/hotkeys.ts";

/** Keys as they are printed on the keyboard: `Mod-K`, `g h`. */
export function KeyHint({ keys }: { keys: string }): JSX.Element {
  return (
    <span class="keys">
      {shownKeys(keys).map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </span>
  );
}

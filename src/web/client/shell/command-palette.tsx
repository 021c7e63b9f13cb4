import type { JSX, TargetedKeyboardEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { useAllCommands, type Command } from "../base/commands.ts";
import { bestMatches } from "../base/matching.ts";
import { Dialog } from "../components/dialog.tsx";
import { KeyHint } from "../components/key-hint.tsx";

/** Pages and what can be done here, found by typing (ARIA Authoring Practices, "Combobox" with a list). */
export function CommandPalette({ onClose }: { onClose: () => void }): JSX.Element {
  const id = useId();
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const commands = useAllCommands().filter((command) => command.id !== "palette");
  const found = bestMatches(typed, commands);
  const chosen = found[Math.min(at, found.length - 1)];
  const run = (command: Command | undefined) => {
    if (command === undefined) return;
    onClose();
    command.run();
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLInputElement>) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = (Math.min(at, found.length - 1) + step + found.length) % Math.max(found.length, 1);
      setAt(next);
      document.getElementById(`${id}-${found[next]?.id ?? ""}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      // What was just typed may not be drawn yet.
      const { value } = event.currentTarget;
      run(value === typed ? chosen : bestMatches(value, commands)[0]);
    }
  };
  return (
    <Dialog title="Go to…" onClose={onClose} class="palette">
      <input
        class="input"
        role="combobox"
        aria-label="Search pages and actions"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={chosen === undefined ? undefined : `${id}-${chosen.id}`}
        autocomplete="off"
        spellcheck={false}
        placeholder="Search pages and actions"
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul class="palette-list" role="listbox" id={`${id}-list`} aria-label="Pages and actions">
        {found.map((command, index) => (
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- keys go to the field, which has the focus
          <li
            key={command.id}
            id={`${id}-${command.id}`}
            class="palette-item"
            role="option"
            aria-selected={command === chosen}
            onPointerMove={() => setAt(index)}
            onClick={() => run(command)}
          >
            <span>{command.title}</span>
            <span class="palette-group">{command.group}</span>
            {command.keys !== undefined && <KeyHint keys={command.keys} />}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="palette-none">No matches.</p>}
    </Dialog>
  );
}

import type { JSX } from "preact";
import { useAllCommands } from "../base/commands.ts";
import { Dialog } from "../components/dialog.tsx";
import { KeyHint } from "../components/key-hint.tsx";

/** Keys of components that have no command. */
const ALWAYS = [{ title: "Close a dialog, cancel", keys: "Escape" }];

/** All keys that count here, by their groups. */
export function KeyList({ onClose }: { onClose: () => void }): JSX.Element {
  const commands = useAllCommands().filter(({ keys }) => keys !== undefined);
  const groups = [...new Set(commands.map(({ group }) => group))];
  return (
    <Dialog title="Keys" onClose={onClose}>
      {groups.map((group) => (
        <section key={group} class="key-group">
          <h3>{group}</h3>
          <dl>
            {[...commands.filter((command) => command.group === group), ...(group === "Help" ? ALWAYS : [])].map(
              ({ title, keys = "" }) => (
                <div key={title}>
                  <dt>{title}</dt>
                  <dd>
                    <KeyHint keys={keys} />
                  </dd>
                </div>
              ),
            )}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}

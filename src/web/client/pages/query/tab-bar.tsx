import type { JSX } from "preact";
import { Button } from "../../components/button.tsx";
import type { Draft, Drafts } from "../../base/drafts.ts";

type TabBarProps = { drafts: Drafts; onChange: (change: (now: Drafts) => Drafts) => void; onNew: () => void };

const SHOWN_CHARS = 24;

/** The open queries. Arrow keys move between them; Delete closes one. */
export function TabBar({ drafts, onChange, onNew }: TabBarProps): JSX.Element {
  const { tabs, active } = drafts;
  const choose = (id: string): void => onChange((now) => ({ ...now, active: id }));
  const close = (id: string): void => onChange((now) => without(now, id));
  const onKeyDown = (event: KeyboardEvent): void => {
    const at = tabs.findIndex(({ id }) => id === active);
    if (event.key === "Delete" && tabs.length > 1) {
      event.preventDefault();
      close(active);
      return;
    }
    const to = event.key === "ArrowRight" ? at + 1 : event.key === "ArrowLeft" ? at - 1 : undefined;
    const next = to === undefined ? undefined : tabs[(to + tabs.length) % tabs.length];
    if (next === undefined) return;
    event.preventDefault();
    choose(next.id);
  };
  return (
    <div class="query-tabs">
      <div class="query-tab-list" role="tablist" aria-label="Open queries" tabIndex={-1} onKeyDown={onKeyDown}>
        {tabs.map((tab, index) => (
          <button
            key={tab.id}
            type="button"
            class="query-tab"
            role="tab"
            aria-selected={tab.id === active}
            tabIndex={tab.id === active ? 0 : -1}
            onClick={() => choose(tab.id)}
          >
            {titleOf(tab, index)}
          </button>
        ))}
      </div>
      {tabs.length > 1 && <Button look="quiet" icon="close" label="Close this tab" onClick={() => close(active)} />}
      <Button look="quiet" icon="plus" label="New tab" onClick={onNew} />
    </div>
  );
}

function titleOf({ title, text }: Draft, index: number): string {
  if (title !== "") return title;
  const line = text.trim().split("\n")[0] ?? "";
  if (line === "") return `Query ${index + 1}`;
  return line.length > SHOWN_CHARS ? `${line.slice(0, SHOWN_CHARS)}…` : line;
}

/** The one beside it becomes the open one. */
function without({ tabs, active }: Drafts, closed: string): Drafts {
  const at = tabs.findIndex(({ id }) => id === closed);
  const rest = tabs.filter(({ id }) => id !== closed);
  const beside = rest[Math.min(at, rest.length - 1)];
  return { tabs: rest, active: active === closed ? (beside?.id ?? active) : active };
}

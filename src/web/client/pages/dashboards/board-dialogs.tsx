import type { JSX } from "preact";
import { ConflictDialog } from "./conflict-dialog.tsx";
import { dashboardChanged } from "./dashboard-api.ts";
import { contentOf, type Content, type Dashboard, type Panel } from "./document.ts";
import { withRoom } from "./layout.ts";
import { PanelDialog } from "./panel-dialog.tsx";
import { SettingsDialog } from "./settings-dialog.tsx";
import type { Draft } from "./use-draft.ts";
import { VersionsDialog } from "./versions-dialog.tsx";

/** The dialog that is open. */
export type Opened = { kind: "settings" | "versions" | "conflict" } | { kind: "panel"; panel: Panel; isNew: boolean };

type BoardDialogsProps = {
  opened: Opened | undefined;
  dashboard: Dashboard;
  draft: Draft | undefined;
  database: string;
  hasChanges: boolean;
  onClose: () => void;
  onContent: (next: (now: Content) => Content) => void;
  onSaved: (saved: Dashboard, sent: Content) => void;
  /** The changes are given up for what the server has. */
  onDropped: (said: string) => void;
};

export function BoardDialogs(props: BoardDialogsProps): JSX.Element | null {
  const { opened, dashboard, draft, database, hasChanges, onClose, onContent, onSaved, onDropped } = props;
  const content = draft?.content ?? dashboard;
  if (opened === undefined) return null;
  switch (opened.kind) {
    case "panel":
      return (
        <PanelDialog
          panel={opened.panel}
          isNew={opened.isNew}
          database={database}
          names={content.settings.variables.map(({ name }) => name)}
          onClose={onClose}
          onDone={(done) => onContent((now) => ({ ...now, panels: withPanel(now.panels, done, opened.isNew) }))}
        />
      );
    case "settings":
      return (
        <SettingsDialog
          content={content}
          database={database}
          onClose={onClose}
          onDone={(done) => onContent((now) => ({ ...now, ...done }))}
        />
      );
    case "versions":
      return (
        <VersionsDialog
          dashboard={dashboard}
          hasDraft={hasChanges}
          onClose={onClose}
          onRestored={(version) => onDropped(`Version ${version} is restored`)}
        />
      );
    case "conflict":
      if (draft === undefined) return null;
      return (
        <ConflictDialog
          base={draft.base}
          own={contentOf(draft.content)}
          onClose={onClose}
          onSaved={(saved) => onSaved(saved, draft.content)}
          onReload={(theirs) => {
            void dashboardChanged(theirs);
            onDropped(`Version ${theirs.version} is shown`);
          }}
        />
      );
  }
}

function withPanel(panels: readonly Panel[], done: Panel, isNew: boolean): readonly Panel[] {
  const placed = withRoom(panels);
  if (isNew) return [...placed, done];
  const grid = placed.find(({ id }) => id === done.id)?.grid ?? done.grid;
  return placed.map((one) => (one.id === done.id ? Object.assign({}, done, { grid }) : one));
}

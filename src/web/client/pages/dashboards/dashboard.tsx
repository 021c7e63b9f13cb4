import { useRoute } from "preact-iso";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { toast } from "../../base/announce.ts";
import { ApiError } from "../../base/api-error.ts";
import { newId } from "../../base/clock.ts";
import { useCommands } from "../../base/commands.ts";
import { flag, text } from "../../base/params.ts";
import { useDatabase, usePageAddress } from "../../base/schema.ts";
import { useMay } from "../../base/session.ts";
import { usePackedText } from "../../base/use-packed-text.ts";
import { useParams } from "../../base/use-params.ts";
import { useMutation, useQuery } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { PageHead } from "../../components/page-head.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { BoardDialogs, type Opened } from "./board-dialogs.tsx";
import { BoardHead } from "./board-head.tsx";
import { keyOf, readDashboard, saveDashboard } from "./dashboard-api.ts";
import { contentOf, type Content, type Dashboard, type Panel } from "./document.ts";
import { freePlace, inReadingOrder, withRoom } from "./layout.ts";
import { PanelGrid } from "./panel-grid.tsx";
import { newQuery } from "./query-fields.tsx";
import type { TimeRange } from "./time-range.ts";
import { TimePicker } from "./time-picker.tsx";
import { useDraft } from "./use-draft.ts";
import { refreshOf, useRange, useShared, useTurns } from "./use-turns.ts";
import { useVariables } from "./use-variables.ts";
import { VariablesBar } from "./variables-bar.tsx";
import { readChosen } from "./variables.ts";
import "./dashboards.css";

/** One dashboard. Range, variables, the panel that is shown alone and whether it is edited are in the address. */
export function DashboardPage(): JSX.Element {
  const { id = "" } = useRoute().params;
  const addressOf = usePageAddress();
  const found = useQuery({ key: keyOf(id), read: (signal) => readDashboard(id, signal) });
  if (found.data !== undefined) return <Board key={id} dashboard={found.data} />;
  if (found.error === null) return <Spinner label="Reading the dashboard…" />;
  const isMissing = found.error instanceof ApiError && (found.error.status === 404 || found.error.status === 400);
  return (
    <>
      <PageHead title="Dashboard" />
      {isMissing ? (
        <EmptyState icon="dashboards" title="There is no such dashboard">
          <p>It was deleted, or its queries run in databases that you may not use.</p>
          <a class="button button-primary" href={addressOf("dashboards")}>
            All dashboards
          </a>
        </EmptyState>
      ) : (
        <ErrorBox title="The dashboard could not be read." error={found.error} onRetry={() => void found.refetch()} />
      )}
    </>
  );
}

const PARAMS = { from: text(), to: text(), refresh: text(), panel: text(), edit: flag() };

function Board({ dashboard }: { dashboard: Dashboard }): JSX.Element {
  const [database] = useDatabase();
  const [params, update] = useParams(PARAMS);
  const [packed, writeChosen] = usePackedText("vars", "");
  const mayWrite = useMay("write");
  const { draft, hasChanges, change, drop } = useDraft(dashboard);
  const [opened, setOpened] = useState<Opened | undefined>();
  const content: Content = draft?.content ?? dashboard;
  const isEditing = params.edit && mayWrite;
  const range = useRange(content, params);
  const { bounds, turn, again } = useTurns(range, refreshOf(content, params.refresh));
  const chosen = useMemo(() => readChosen(packed ?? ""), [packed]);
  const { states, parameters } = useVariables(content.settings.variables, chosen, bounds, turn);
  const shared = useShared(parameters);
  const panels = usePlaced(content, isEditing);
  const alone = panels.find(({ id }) => id === params.panel);

  const finish = () => {
    drop();
    setOpened(undefined);
    update({ edit: false });
  };
  const isSaved = ({ version }: Dashboard) => {
    finish();
    toast(`Saved as version ${version}`, "good");
  };
  const save = useSaving(dashboard.id, () => setOpened({ kind: "conflict" }));
  const leave = () => {
    save.reset();
    finish();
  };

  const setPanels = (next: (panels: readonly Panel[]) => readonly Panel[]): void =>
    change((now) => ({ ...now, panels: next(withRoom(now.panels)) }));
  const addPanel = (): void => {
    setOpened({ kind: "panel", isNew: true, panel: newPanel(panels, database) });
  };
  const setRange = ({ from, to }: TimeRange): void => update({ from, to });
  useBoardCommands({
    mayWrite,
    isEditing,
    onAgain: again,
    onEdit: () => update({ edit: !isEditing }),
    onAdd: addPanel,
  });

  return (
    <div class="dashboard">
      <BoardHead
        id={dashboard.id}
        content={content}
        isEditing={isEditing}
        hasChanges={hasChanges}
        isSaving={save.isPending}
        onAdd={addPanel}
        onOpen={(kind) => setOpened({ kind })}
        onEdit={() => update({ edit: true })}
        onLeave={leave}
        onSave={() => void save.submit(contentOf(content), draft?.base.version ?? dashboard.version, isSaved)}
        onCopied={drop}
      />
      {hasChanges && !isEditing && <p class="draft-note">What you see has changes that are not saved.</p>}
      {save.error !== null && <ErrorBox title="The dashboard was not saved." error={save.error} />}
      <div class="dashboard-bar">
        <VariablesBar
          states={states}
          onChoose={(name, value) => writeChosen(JSON.stringify({ ...chosen, [name]: value }), true)}
        />
        <TimePicker
          range={range}
          onRange={setRange}
          refreshSecs={refreshOf(content, params.refresh)}
          onRefreshSecs={(seconds) => update({ refresh: String(seconds) })}
          onRefresh={again}
        />
      </div>
      {panels.length === 0 ? (
        <NoPanels
          onAdd={() => {
            update({ edit: true });
            addPanel();
          }}
        />
      ) : (
        <PanelGrid
          panels={panels}
          alone={alone}
          parameters={shared}
          bounds={bounds}
          turn={turn}
          isPaused={packed === undefined}
          isEditing={isEditing}
          onAlone={(id) => update({ panel: id })}
          onRange={setRange}
          onEdit={(panel) => setOpened({ kind: "panel", panel, isNew: false })}
          onPanels={setPanels}
        />
      )}
      <BoardDialogs
        opened={opened}
        dashboard={dashboard}
        draft={draft}
        database={database}
        hasChanges={hasChanges}
        onClose={() => setOpened(undefined)}
        onContent={(next) => {
          change(next);
          setOpened(undefined);
        }}
        onSaved={isSaved}
        onDropped={(said) => {
          leave();
          toast(said, "good");
        }}
      />
    </div>
  );
}

/** Saves what the changes were made on, and asks where somebody else has saved since. */
function useSaving(id: string, onConflict: () => void) {
  const save = useMutation(async ({ content, version }: { content: Content; version: number }) => {
    try {
      return await saveDashboard(id, content, version);
    } catch (error) {
      if (error instanceof ApiError && error.status === 412) return "conflict" as const;
      throw error;
    }
  });
  const submit = async (content: Content, version: number, onSaved: (saved: Dashboard) => void): Promise<void> => {
    const saved = await save.run({ content, version });
    if (saved === "conflict") onConflict();
    else if (saved !== undefined) onSaved(saved);
  };
  return { ...save, submit };
}

type BoardCommands = {
  mayWrite: boolean;
  isEditing: boolean;
  onAgain: () => void;
  onEdit: () => void;
  onAdd: () => void;
};

function useBoardCommands({ mayWrite, isEditing, onAgain, onEdit, onAdd }: BoardCommands): void {
  useCommands([
    { id: "dashboard:again", title: "Run all panels again", group: "Dashboard", keys: "r", run: onAgain },
    ...(mayWrite
      ? [
          {
            id: "dashboard:edit",
            title: isEditing ? "Look at the dashboard" : "Edit the dashboard",
            group: "Dashboard",
            keys: "e",
            run: onEdit,
          },
          { id: "dashboard:add", title: "Add a panel", group: "Dashboard", run: onAdd },
        ]
      : []),
  ]);
}

function NoPanels({ onAdd }: { onAdd: () => void }): JSX.Element {
  return (
    <EmptyState icon="dashboards" title="This dashboard has no panels yet">
      <p>A panel shows the rows of a query: as lines, bars, a table, or one number.</p>
      <Button look="primary" icon="plus" needs="write" onClick={onAdd}>
        Add the first panel
      </Button>
    </EmptyState>
  );
}

function usePlaced({ panels }: Content, isEditing: boolean): readonly Panel[] {
  return useMemo(() => {
    const placed = withRoom(panels);
    // While they are moved their elements keep their order: one that is put elsewhere would lose the focus.
    return isEditing ? placed : inReadingOrder(placed);
  }, [panels, isEditing]);
}

function newPanel(panels: readonly Panel[], database: string): Panel {
  const grid = freePlace(panels, { w: 12, h: 8 });
  return { id: newId(), title: "", type: "timeseries", grid, queries: [newQuery(database)], options: {} };
}

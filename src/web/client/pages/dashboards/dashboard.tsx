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
import { keyOf, readDashboard, saveUnlessChanged } from "./dashboard-api.ts";
import { contentOf, type Content, type Dashboard, type Panel } from "./document.ts";
import { freePlace, inReadingOrder, withRoom } from "./layout.ts";
import { PanelGrid } from "./panel-grid.tsx";
import { newQuery } from "./query-fields.tsx";
import type { TimeRange } from "./time-range.ts";
import { TimePicker } from "./time-picker.tsx";
import { useDraft, useIsDraftRead } from "./use-draft.ts";
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
  const isDraftRead = useIsDraftRead(id);
  if (found.data !== undefined && isDraftRead) return <Board key={id} dashboard={found.data} />;
  if (found.error === null || found.data !== undefined) return <Spinner label="Reading the dashboard…" />;
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
  const { draft, hasChanges, change, drop, settle } = useDraft(dashboard);
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

  const isSaved = (saved: Dashboard, sent: Content) => {
    setOpened(undefined);
    if (settle(saved, sent)) update({ edit: false });
    toast(`Saved as version ${saved.version}`, "good");
  };
  const showConflict = () => setOpened({ kind: "conflict" });
  const save = useSaving(dashboard.id, showConflict);
  const base = draft?.base.version ?? dashboard.version;
  const submit = () => void save.submit(contentOf(content), base, isSaved);
  const leave = (said?: string) => {
    save.reset();
    drop();
    setOpened(undefined);
    update({ edit: false });
    if (said !== undefined) toast(said, "good");
  };

  const setPanels = (next: (panels: readonly Panel[]) => readonly Panel[]): void =>
    change((now) => ({ ...now, panels: next(withRoom(now.panels)) }));
  const addPanel = (): void => {
    setOpened({ kind: "panel", isNew: true, panel: newPanel(panels, database) });
  };
  const addFirst = (): void => {
    update({ edit: true });
    addPanel();
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
        onLeave={() => leave()}
        onSave={submit}
        onCopied={drop}
      />
      {hasChanges && !save.isPending && (
        <DraftNote base={base} version={dashboard.version} isEditing={isEditing} onCompare={showConflict} />
      )}
      {save.error !== null && <ErrorBox title="The dashboard was not saved." error={save.error} onRetry={submit} />}
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
        <NoPanels onAdd={addFirst} />
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
        onDropped={leave}
      />
    </div>
  );
}

type DraftNoteProps = { base: number; version: number; isEditing: boolean; onCompare: () => void };

/** Says that there are changes that only this browser has, and whether somebody else has saved since. */
function DraftNote({ base, version, isEditing, onCompare }: DraftNoteProps): JSX.Element | null {
  const isBehind = base !== version;
  if (isEditing && !isBehind) return null;
  return (
    <div class="draft-note" role="status">
      <p>
        {!isEditing && "What you see has changes that are not saved. "}
        {isBehind && `Your changes began with version ${base}; version ${version} has been saved since.`}
      </p>
      {isBehind && (
        <Button needs="write" onClick={onCompare}>
          Compare
        </Button>
      )}
    </div>
  );
}

/** Saves what the changes were made on, and asks where somebody else has saved since. */
function useSaving(id: string, onConflict: () => void) {
  const save = useMutation(({ content, version }: { content: Content; version: number }) =>
    saveUnlessChanged(id, content, version),
  );
  const submit = async (
    content: Content,
    version: number,
    onSaved: (saved: Dashboard, sent: Content) => void,
  ): Promise<void> => {
    const saved = await save.run({ content, version });
    if (saved === "conflict") onConflict();
    else if (saved !== undefined) onSaved(saved, content);
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

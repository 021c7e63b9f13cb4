import type { Extension } from "@codemirror/state";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { newId } from "../../base/clock.ts";
import { useCommands } from "../../base/commands.ts";
import { lazyPart, usePart } from "../../base/lazy-part.ts";
import { useDatabase, useSchema } from "../../base/schema.ts";
import { usePackedText } from "../../base/use-packed-text.ts";
import { Button } from "../../components/button.tsx";
import { Select } from "../../components/field.tsx";
import { Editor } from "../../editor/editor.tsx";
import type { EditorHandle } from "../../editor/code-mirror.ts";
import { keepDrafts, readDrafts, type Draft, type Drafts } from "../../base/drafts.ts";
import { KeptQueries, type KeptText } from "./kept-queries.tsx";
import { quotedIfNeeded } from "./quoted.ts";
import { ResultPanel } from "./result-panel.tsx";
import { SaveDialog } from "./save-dialog.tsx";
import { SchemaTree } from "./schema-tree.tsx";
import { statementAt } from "./statements.ts";
import { TabBar } from "./tab-bar.tsx";
import { useResult } from "./use-result.ts";
import "./query.css";

const completion = lazyPart(async () => (await import("./completion.ts")).sqlCompletion);

const LIMITS = [100, 1_000, 10_000, 100_000, 1_000_000, 0] as const;
const DEFAULT_LIMIT = 10_000;

function newDraft(more: Partial<Draft> = {}): Draft {
  return { id: newId(), title: "", text: "", language: "sql", limit: DEFAULT_LIMIT, ...more };
}

/** Queries in tabs, and their rows. What is typed is kept in this browser; the text of the open tab is in the address, too. */
export function QueryPage(): JSX.Element {
  const [drafts, setDrafts] = useDrafts();
  if (drafts === undefined) return <></>;
  return <Workbench drafts={drafts} onChange={setDrafts} />;
}

type WorkbenchProps = { drafts: Drafts; onChange: (change: (now: Drafts) => Drafts) => void };

function Workbench({ drafts, onChange }: WorkbenchProps): JSX.Element {
  const [database, chooseDatabase] = useDatabase();
  const { data: databases } = useSchema();
  const [shown, setShown] = useState<"kept" | "save" | undefined>();
  const [isSchemaShown, setSchemaShown] = useState(true);
  const editor = useRef<EditorHandle | undefined>(undefined);
  const draft = drafts.tabs.find(({ id }) => id === drafts.active) ?? drafts.tabs[0] ?? newDraft();
  // The editor has its own text from here on: what comes back by way of the drafts would be behind what is typed.
  const firstText = useMemo(() => draft.text, [draft.id]);
  const { current, start, stop } = useResult();
  const { part: makeCompletion } = usePart(completion);
  const extensions = useMemo<Extension | undefined>(
    () => (draft.language === "sql" ? makeCompletion?.(databases ?? [], database) : undefined),
    [makeCompletion, databases, database, draft.language],
  );
  const change = (part: Partial<Draft>): void => {
    onChange((now) => ({ ...now, tabs: now.tabs.map((tab) => (tab.id === draft.id ? { ...tab, ...part } : tab)) }));
  };
  const open = (part: Partial<Draft>): void => {
    const tab = newDraft({ language: draft.language, limit: draft.limit, ...part });
    onChange((now) => ({ tabs: [...now.tabs, tab], active: tab.id }));
  };
  const run = (how: { isExplained?: boolean; text?: string } = {}): void => {
    const { language, limit } = draft;
    const cursor = editor.current?.view.state.selection.main.head ?? draft.text.length;
    const text = how.text ?? editor.current?.selectedText() ?? statementAt(draft.text, cursor, language)?.text ?? "";
    if (text.trim() === "") return;
    start({ text, language, database, limit, ...(how.isExplained === true && { isExplained: true }) });
  };
  const isRunning = current?.result.isRunning === true;
  const cancel = (): boolean => {
    if (!isRunning) return false;
    stop();
    return true;
  };
  const insert = (text: string): void => {
    const { view } = editor.current ?? {};
    view?.dispatch(view.state.replaceSelection(text));
    editor.current?.focus();
  };
  const choose = (kept: KeptText, title: string): void => {
    chooseDatabase(kept.database);
    open({ text: kept.text, language: kept.language, title });
    setShown(undefined);
  };
  useCommands([
    { id: "query:run", title: "Run the query", group: "Query", keys: "Mod-Enter", run: () => run() },
    { id: "query:explain", title: "Explain the query", group: "Query", run: () => run({ isExplained: true }) },
    { id: "query:tab", title: "New tab", group: "Query", run: () => open({}) },
    { id: "query:kept", title: "Earlier queries", group: "Query", run: () => setShown("kept") },
  ]);
  return (
    <div class={isSchemaShown ? "query-page" : "query-page query-page-wide"}>
      {isSchemaShown && (
        <aside class="query-side">
          <SchemaTree
            database={database}
            onInsert={insert}
            onLook={(table) => run({ text: lookAt(table, draft.language) })}
          />
        </aside>
      )}
      <div class="query-main">
        <h1 class="unseen">Query</h1>
        <TabBar drafts={drafts} onChange={onChange} onNew={() => open({})} />
        <Editor
          key={draft.id}
          class="query-editor"
          label="Query"
          value={firstText}
          language={draft.language === "sql" ? "sql" : "text"}
          placeholder={draft.language === "sql" ? "SELECT …" : "table | where … | summarize count() by …"}
          extensions={extensions}
          onChange={(text) => change({ text })}
          onRun={() => run()}
          onCancel={cancel}
          onReady={(made) => {
            editor.current = made;
            made.focus();
          }}
        />
        <QueryBar
          draft={draft}
          isRunning={isRunning}
          isSchemaShown={isSchemaShown}
          onRun={(isExplained) => run({ isExplained })}
          onStop={stop}
          onChange={change}
          onShow={setShown}
          onShowSchema={setSchemaShown}
        />
        <ResultPanel current={current} onRetry={() => current !== undefined && start(current.run)} />
      </div>
      {shown === "kept" && <KeptQueries onChoose={choose} onClose={() => setShown(undefined)} />}
      {shown === "save" && (
        <SaveDialog
          kept={{ text: draft.text, language: draft.language, database }}
          title={draft.title}
          onSaved={(title) => {
            change({ title });
            setShown(undefined);
          }}
          onClose={() => setShown(undefined)}
        />
      )}
    </div>
  );
}

type QueryBarProps = {
  draft: Draft;
  isRunning: boolean;
  isSchemaShown: boolean;
  onRun: (isExplained: boolean) => void;
  onStop: () => void;
  onChange: (part: Partial<Draft>) => void;
  onShow: (what: "kept" | "save") => void;
  onShowSchema: (isShown: boolean) => void;
};

function QueryBar(props: QueryBarProps): JSX.Element {
  const { draft, isRunning, isSchemaShown, onRun, onStop, onChange, onShow, onShowSchema } = props;
  return (
    <div class="query-bar">
      {isRunning ? (
        <Button look="danger" icon="stop" onClick={onStop}>
          Stop
        </Button>
      ) : (
        <Button look="primary" icon="play" onClick={() => onRun(false)}>
          Run
        </Button>
      )}
      <Button icon="info" onClick={() => onRun(true)}>
        Explain
      </Button>
      <Select
        label="Language"
        isLabelHidden
        value={draft.language}
        options={[
          { value: "sql", title: "SQL" },
          { value: "kql", title: "KQL" },
        ]}
        onChange={(language) => onChange({ language })}
      />
      <Select
        label="Most rows"
        isLabelHidden
        value={String(draft.limit)}
        options={LIMITS.map((limit) => ({ value: String(limit), title: limitTitle(limit) }))}
        onChange={(limit) => onChange({ limit: Number(limit) })}
      />
      <span class="query-gap" />
      <Button look="quiet" icon="book" onClick={() => onShow("kept")}>
        Earlier queries
      </Button>
      <Button
        look="quiet"
        icon="plus"
        isDisabled={draft.text.trim() === ""}
        reason="There is nothing to save yet."
        onClick={() => onShow("save")}
      >
        Save
      </Button>
      <Button look="quiet" icon="catalog" isPressed={isSchemaShown} onClick={() => onShowSchema(!isSchemaShown)}>
        Tables
      </Button>
    </div>
  );
}

function limitTitle(limit: number): string {
  return limit === 0 ? "All rows" : `${limit.toLocaleString("en-US")} rows`;
}

function lookAt(table: string, language: "sql" | "kql"): string {
  return language === "sql"
    ? `SELECT * FROM ${quotedIfNeeded(table)} LIMIT 100`
    : `['${table.replaceAll("'", "\\'")}'] | take 100`;
}

/** The tabs of last time; with a text in the address, that is in the open one. */
function useDrafts(): [Drafts | undefined, WorkbenchProps["onChange"]] {
  const [drafts, setDrafts] = useState<Drafts | undefined>();
  const [packed, write] = usePackedText("q", "");
  useEffect(() => {
    if (packed === undefined || drafts !== undefined) return;
    void readDrafts().then((kept) => setDrafts(withText(kept, packed)));
  }, [packed, drafts]);
  const change: WorkbenchProps["onChange"] = (next) => {
    setDrafts((now) => {
      if (now === undefined) return now;
      const changed = next(now);
      void keepDrafts(changed);
      write(changed.tabs.find(({ id }) => id === changed.active)?.text ?? "");
      return changed;
    });
  };
  return [drafts, change];
}

function withText(kept: Drafts | undefined, text: string): Drafts {
  const first = newDraft({ text });
  if (kept === undefined) return { tabs: [first], active: first.id };
  if (text === "") return kept;
  const known = kept.tabs.find((tab) => tab.text === text);
  return known === undefined ? { tabs: [...kept.tabs, first], active: first.id } : { ...kept, active: known.id };
}

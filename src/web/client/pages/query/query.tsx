import type { Extension } from "@codemirror/state";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { newId } from "../../base/clock.ts";
import { useCommands } from "../../base/commands.ts";
import { lazyPart, usePart } from "../../base/lazy-part.ts";
import { tablesOf, useDatabase, useSchema, type Database } from "../../base/schema.ts";
import { useIsNarrow } from "../../base/use-is-narrow.ts";
import { usePackedText } from "../../base/use-packed-text.ts";
import { Editor } from "../../editor/editor.tsx";
import type { EditorHandle } from "../../editor/code-mirror.ts";
import { keepDrafts, readDrafts, type Draft, type Drafts } from "../../base/drafts.ts";
import { CheckProblems } from "./check-result.tsx";
import { KeptQueries, type KeptText } from "./kept-queries.tsx";
import { QueryBar, type Shown } from "./query-bar.tsx";
import type { Problem } from "./query-check.ts";
import { quotedIfNeeded } from "./quoted.ts";
import { ResultPanel } from "./result-panel.tsx";
import { SaveDialog } from "./save-dialog.tsx";
import { SchemaTree } from "./schema-tree.tsx";
import { textToRun, type TextSelection } from "./statements.ts";
import { TabBar } from "./tab-bar.tsx";
import { useCheck } from "./use-check.ts";
import { useResult } from "./use-result.ts";
import "./query.css";

const completion = lazyPart(async () => (await import("./completion.ts")).sqlCompletion);

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
  const [shown, setShown] = useState<Shown | undefined>();
  const isNarrow = useIsNarrow();
  // Where there is one column the tables would push the editor off the screen.
  const [isSchemaShown, setSchemaShown] = useState(!isNarrow);
  const editor = useRef<EditorHandle | undefined>(undefined);
  const draft = drafts.tabs.find(({ id }) => id === drafts.active) ?? drafts.tabs[0] ?? newDraft();
  // The editor has its own text from here on: what comes back by way of the drafts would be behind what is typed.
  const firstText = useMemo(() => draft.text, [draft.id]);
  const { current, start, stop } = useResult();
  const checking = useCheck(editor, draft.language, database);
  const names = useNames(draft.language, databases, database);
  const change = (part: Partial<Draft>): void => {
    onChange((now) => ({ ...now, tabs: now.tabs.map((tab) => (tab.id === draft.id ? { ...tab, ...part } : tab)) }));
  };
  const open = (part: Partial<Draft>): void => {
    const tab = newDraft({ language: draft.language, limit: draft.limit, ...part });
    onChange((now) => ({ tabs: [...now.tabs, tab], active: tab.id }));
  };
  const run = (how: { isExplained?: boolean; text?: string } = {}): void => {
    const { language, limit } = draft;
    const text = how.text ?? textToRun(...textIn(editor.current, draft), language)?.text;
    if (text === undefined) return;
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
  const show = ({ from, to }: Problem): void => {
    editor.current?.view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
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
    { id: "query:kept", title: "Earlier queries", group: "Query", run: () => setShown("history") },
    { id: "query:running", title: "Running queries", group: "Query", run: () => setShown("running") },
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
          language={draft.language}
          tables={tablesOf(databases, database)}
          isScript
          placeholder={draft.language === "sql" ? "SELECT …" : "table | where … | summarize count() by …"}
          extensions={names}
          onChange={(text) => change({ text })}
          onTouched={checking.touched}
          onRun={() => run()}
          onCancel={cancel}
          onReady={(made) => {
            editor.current = made;
            made.focus();
            checking.begin();
          }}
        />
        <QueryBar
          draft={draft}
          checking={checking}
          isRunning={isRunning}
          isSchemaShown={isSchemaShown}
          onRun={(isExplained) => run({ isExplained })}
          onStop={stop}
          onChange={change}
          onShow={setShown}
          onShowSchema={setSchemaShown}
        />
        <CheckProblems checking={checking} onShow={show} />
        <ResultPanel current={current} onRetry={() => current !== undefined && start(current.run)} />
      </div>
      {(shown === "history" || shown === "running") && (
        <KeptQueries first={shown} onChoose={choose} onClose={() => setShown(undefined)} />
      )}
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

function lookAt(table: string, language: "sql" | "kql"): string {
  return language === "sql"
    ? `SELECT * FROM ${quotedIfNeeded(table)} LIMIT 100`
    : `['${table.replaceAll("'", "\\'")}'] | take 100`;
}

/** The text and what is selected of it; of a text whose editor is still being loaded, the end. */
function textIn(editor: EditorHandle | undefined, { text }: Draft): [text: string, selection: TextSelection] {
  if (editor === undefined) return [text, { from: text.length, to: text.length, head: text.length }];
  const { doc, selection } = editor.view.state;
  return [doc.toString(), selection.main];
}

/** The names that SQL is completed with; KQL has a service of its own. */
function useNames(
  language: Draft["language"],
  databases: readonly Database[] | undefined,
  database: string,
): Extension | undefined {
  const { part: makeCompletion } = usePart(completion);
  return useMemo(
    () => (language === "sql" ? makeCompletion?.(databases ?? [], database) : undefined),
    [makeCompletion, databases, database, language],
  );
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
      keepDrafts(changed);
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

import type { RefObject } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { clock } from "../../base/clock.ts";
import type { EditorHandle } from "../../editor/code-mirror.ts";
import { checkQuery, type CheckFindings, type CheckedText } from "./query-check.ts";
import { textToRun } from "./statements.ts";

export type CheckOutcome = { of: CheckedText } & (
  | ({ kind: "checked" } & CheckFindings)
  | { kind: "failed"; error: unknown }
);

export type Checking = {
  /** What was found last; undefined where there is nothing to check. */
  outcome: CheckOutcome | undefined;
  /** Whether it is about what Run would run now. */
  isCurrent: boolean;
  retry: () => void;
  /** To be called when something is typed or selected. */
  touched: (hasTextChanged: boolean) => void;
  /** To be called when there is another editor. */
  begin: () => void;
};

/** By then whoever types has paused. */
const CHECK_AFTER_MS = 400;

/**
 * Has the server check what Run would run, whenever typing pauses: what is wrong with it, and what it would read. One
 * check is under way at a time; an edit ends it.
 */
export function useCheck(
  editor: RefObject<EditorHandle | undefined>,
  language: "sql" | "kql",
  database: string,
): Checking {
  const [asked, setAsked] = useState<CheckedText | undefined>();
  const [outcome, setOutcome] = useState<CheckOutcome | undefined>();
  const cancelWait = useRef<() => void>(() => undefined);
  const read = useCallback(() => {
    const { current } = editor;
    const next = current && textOf(current, language, database);
    if (next === undefined) setOutcome(undefined);
    setAsked((now) => (now !== undefined && next !== undefined && isSame(now, next) ? now : next));
  }, [editor, language, database]);
  const latestRead = useRef(read);
  latestRead.current = read;
  const touched = useCallback((hasTextChanged: boolean) => {
    if (hasTextChanged) setAsked(undefined);
    cancelWait.current();
    cancelWait.current = clock.after(CHECK_AFTER_MS, () => latestRead.current());
  }, []);
  const begin = useCallback(() => {
    setOutcome(undefined);
    touched(true);
  }, [touched]);
  useEffect(() => touched(true), [touched, language, database]);
  useEffect(() => () => cancelWait.current(), []);
  useEffect(() => {
    if (asked === undefined) return;
    const stop = new AbortController();
    const show = (found: CheckOutcome): void => {
      if (!stop.signal.aborted) setOutcome(found);
    };
    checkQuery(asked, stop.signal).then(
      (findings) => show({ kind: "checked", of: asked, ...findings }),
      (error: unknown) => show({ kind: "failed", of: asked, error }),
    );
    return () => stop.abort();
  }, [asked]);
  const isCurrent = asked !== undefined && outcome?.of === asked;
  useEffect(() => {
    if (outcome === undefined) editor.current?.mark([]);
    else if (isCurrent) outcome.of.editor.mark(outcome.kind === "checked" ? outcome.problems : []);
  }, [editor, outcome, isCurrent]);
  return { outcome, isCurrent, retry: () => setAsked((now) => now && { ...now }), touched, begin };
}

function textOf(editor: EditorHandle, language: "sql" | "kql", database: string): CheckedText | undefined {
  const { doc, selection } = editor.view.state;
  const found = textToRun(doc.toString(), selection.main, language);
  return found && { editor, text: found.text, from: found.from, language, database };
}

function isSame(a: CheckedText, b: CheckedText): boolean {
  return (
    a.editor === b.editor &&
    a.text === b.text &&
    a.from === b.from &&
    a.language === b.language &&
    a.database === b.database
  );
}

import type { Extension } from "@codemirror/state";
import type { RefObject } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { clock } from "../../base/clock.ts";
import { lazyPart, usePart } from "../../base/lazy-part.ts";
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
  /** For the editor: draws what is wrong, and notices what is typed and selected. */
  extension: Extension | undefined;
  /** To be called when there is another editor. */
  begin: () => void;
};

const part = lazyPart(() => import("./check-marks.ts"));

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
  const { part: library } = usePart(part);
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
  const extension = useMemo(() => library?.checkMarks(touched), [library, touched]);
  useEffect(() => touched(true), [touched, library, language, database]);
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
    if (outcome === undefined) {
      if (editor.current !== undefined && editor.current !== null) library?.mark(editor.current.view, []);
    } else if (isCurrent) {
      library?.mark(outcome.of.editor.view, outcome.kind === "checked" ? outcome.problems : []);
    }
  }, [library, editor, outcome, isCurrent]);
  return { outcome, isCurrent, retry: () => setAsked((now) => now && { ...now }), extension, begin };
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

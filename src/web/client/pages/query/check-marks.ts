import { forceLinting, linter, nextDiagnostic, type Diagnostic } from "@codemirror/lint";
import { StateEffect, StateField, type Extension } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import type { Problem } from "./query-check.ts";

/**
 * What the server finds wrong with a query, drawn in the editor. It is one source of marks among others, so that those of
 * a language service stay. Loaded after the editor, whose libraries it needs.
 */
const setMarks = StateEffect.define<readonly Diagnostic[]>();

const NONE: readonly Diagnostic[] = [];

const marks = StateField.define<readonly Diagnostic[]>({
  create: () => NONE,
  update(before, { docChanged, changes, effects }) {
    const moved =
      docChanged && before.length > 0
        ? before.map((mark) => {
            const from = changes.mapPos(mark.from, 1);
            return { ...mark, from, to: Math.max(from, changes.mapPos(mark.to, -1)) };
          })
        : before;
    return effects.reduce((now, effect) => (effect.is(setMarks) ? effect.value : now), moved);
  },
});

/** Draws the marks, leads from one to the next by F8, and says when the text or the selection is another. */
export function checkMarks(onTouched: (hasTextChanged: boolean) => void): Extension {
  return [
    marks,
    linter(({ state }) => state.field(marks), {
      needsRefresh: ({ startState, state }) => startState.field(marks, false) !== state.field(marks, false),
    }),
    keymap.of([{ key: "F8", run: nextDiagnostic }]),
    EditorView.updateListener.of(({ docChanged, selectionSet }) => {
      if (docChanged || selectionSet) onTouched(docChanged);
    }),
  ];
}

/** Replaces the marks of the last check. */
export function mark(view: EditorView, problems: readonly Problem[]): void {
  if (problems.length === 0 && (view.state.field(marks, false) ?? NONE).length === 0) return;
  const found = problems.map(({ from, to, message }): Diagnostic => ({ from, to, message, severity: "error" }));
  view.dispatch({ effects: setMarks.of(found) });
  forceLinting(view);
}

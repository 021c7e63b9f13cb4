import { setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { StateEffect, StateField, type ChangeDesc } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";

/** A part of the text, by its characters from 0, and what is wrong with it. */
export type Problem = { from: number; to: number; message: string; severity?: Diagnostic["severity"] };

/** Who has found it: the server, which knows what would run, or the service of the language, which is there at once. */
export type ProblemSource = "server" | "service";

type Found = Readonly<Record<ProblemSource, readonly Diagnostic[]>>;

const setFound = StateEffect.define<Found>();

/**
 * What each source has found last, where it is now. The editor's library knows one list of marks and no sources: whoever
 * sets that list drops what others have found, as its `linter()` does. So it is set here alone.
 */
export const problems = StateField.define<Found>({
  create: () => ({ server: [], service: [] }),
  update(before, { docChanged, changes, effects }) {
    const moved = docChanged
      ? { server: movedBy(changes, before.server), service: movedBy(changes, before.service) }
      : before;
    return effects.reduce((now, effect) => (effect.is(setFound) ? effect.value : now), moved);
  },
});

/** Marks what a source has found wrong, in the place of what it found before; what the other has found stays. */
export function showProblems(view: EditorView, source: ProblemSource, found: readonly Problem[]): void {
  const { state } = view;
  const before = state.field(problems);
  if (found.length === 0 && before[source].length === 0) return;
  const last = state.doc.length;
  const marks = found.map(({ from, to, message, severity = "error" }): Diagnostic => {
    const start = Math.min(from, last);
    return { from: start, to: Math.min(Math.max(to, start), last), message, severity };
  });
  const now = { ...before, [source]: marks };
  view.dispatch({ effects: setFound.of(now) }, setDiagnostics(state, visible(now)));
}

/** Of a mistake that both have found the server's words are shown: they say what a run would say. */
function visible({ server, service }: Found): Diagnostic[] {
  const own = service.filter(({ from, to }) => !server.some((other) => from <= other.to && other.from <= to));
  return [...server, ...own];
}

function movedBy(changes: ChangeDesc, marks: readonly Diagnostic[]): readonly Diagnostic[] {
  return marks.map((mark) => {
    const from = changes.mapPos(mark.from, 1);
    return { ...mark, from, to: Math.max(from, changes.mapPos(mark.to, -1)) };
  });
}

import { forEachDiagnostic, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";

/** A part of the text, by its characters from 0, and what is wrong with it. */
export type Problem = { from: number; to: number; message: string; severity?: Diagnostic["severity"] };

/** Who has found it: the page, mostly in an answer of the server, or the service of the language. */
export type ProblemSource = "page" | "service";

const ofService = new WeakSet<Diagnostic>();

/** Marks what a source has found wrong, in the place of what it found before; what others have found stays. */
export function showProblems(view: EditorView, source: ProblemSource, problems: readonly Problem[]): void {
  const { state } = view;
  const last = state.doc.length;
  const found: Diagnostic[] = problems.map(({ from, to, message, severity = "error" }) => {
    const start = Math.min(from, last);
    return { from: start, to: Math.min(Math.max(to, start), last), message, severity };
  });
  if (source === "service") for (const one of found) ofService.add(one);
  const kept: Diagnostic[] = [];
  let dropped = 0;
  forEachDiagnostic(state, (one, from, to) => {
    if (ofService.has(one) === (source === "service")) {
      dropped++;
      return;
    }
    const moved = { ...one, from, to };
    if (source === "page") ofService.add(moved);
    kept.push(moved);
  });
  if (found.length + dropped > 0) view.dispatch(setDiagnostics(state, [...kept, ...found]));
}

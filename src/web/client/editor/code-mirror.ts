import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { lintGutter, nextDiagnostic } from "@codemirror/lint";
import { Compartment, EditorState, Prec, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { styleNonce } from "../base/nonce.ts";
import { editorTheme } from "./editor-theme.ts";
import { kqlLanguage } from "./kql-language.ts";
import { problems, showProblems, type Problem } from "./problems.ts";
import { sqlLanguage } from "./sql-language.ts";

/** What a text is read as. */
export type EditorLanguage = "sql" | "kql" | "text";

export type EditorSettings = {
  parent: HTMLElement;
  text: string;
  /** What it is called by screen readers. */
  label: string;
  language?: EditorLanguage | undefined;
  placeholder?: string;
  isReadOnly?: boolean | undefined;
  /** Completion, lint, marks: what a page adds. One value for as long as it is the same. */
  extensions?: Extension | undefined;
  onChange?: (text: string) => void;
  /** The text has changed, or what is selected in it. */
  onTouched?: (hasTextChanged: boolean) => void;
  /** Mod-Enter. */
  onRun?: () => void;
  /** Escape, where nothing in the editor takes it; says whether it did something. */
  onCancel?: () => boolean;
};

export type EditorHandle = {
  view: EditorView;
  /** Replaces the text, unless it is the same. */
  setText(text: string): void;
  /** What is selected, where something is. */
  selectedText(): string | undefined;
  /** Marks what the server finds wrong in the text, until it is called again; none clears the marks. */
  mark(problems: readonly Problem[]): void;
  configure(settings: Pick<EditorSettings, "language" | "extensions" | "isReadOnly">): void;
  focus(): void;
  destroy(): void;
};

export function createEditor(settings: EditorSettings): EditorHandle {
  const { parent, text, label, onChange, onTouched, onRun, onCancel } = settings;
  const [own, fixed] = [new Compartment(), new Compartment()];
  const run = () => {
    onRun?.();
    return onRun !== undefined;
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        // Styles are made while it runs: the page's policy lets in those with this nonce.
        EditorView.cspNonce.of(styleNonce()),
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
        Prec.highest(keymap.of([{ key: "Mod-Enter", run }])),
        lineNumbers(),
        highlightSpecialChars(),
        highlightActiveLine(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        lintGutter(),
        problems,
        editorTheme,
        own.of(settings.extensions ?? []),
        fixed.of(fixedBy(settings)),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap]),
        keymap.of([{ key: "F8", run: nextDiagnostic }]),
        Prec.lowest(keymap.of([{ key: "Escape", run: () => onCancel?.() ?? false }])),
        ...(settings.placeholder === undefined ? [] : [placeholder(settings.placeholder)]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !update.transactions.some((one) => one.isUserEvent(FROM_OUTSIDE))) {
            onChange?.(update.state.doc.toString());
          }
          if (update.docChanged || update.selectionSet) onTouched?.(update.docChanged);
        }),
      ],
    }),
  });
  return {
    view,
    setText(next) {
      if (view.state.doc.toString() === next) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next }, userEvent: FROM_OUTSIDE });
    },
    selectedText() {
      const { from, to } = view.state.selection.main;
      return from === to ? undefined : view.state.sliceDoc(from, to);
    },
    mark: (found) => showProblems(view, "server", found),
    configure(next) {
      view.dispatch({
        effects: [own.reconfigure(next.extensions ?? []), fixed.reconfigure(fixedBy(next))],
      });
      // What the service of one language has found is not wrong in another.
      if (next.language !== "kql") showProblems(view, "service", []);
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

/** The page has set the text: it need not be told of it. */
const FROM_OUTSIDE = "engine.set";

function fixedBy({ language, isReadOnly }: Pick<EditorSettings, "language" | "isReadOnly">): Extension {
  return [
    ...languageOf(language),
    EditorState.readOnly.of(isReadOnly === true),
    EditorView.editable.of(isReadOnly !== true),
  ];
}

function languageOf(language: EditorLanguage = "sql"): readonly Extension[] {
  switch (language) {
    case "sql":
      return [sqlLanguage];
    case "kql":
      return [kqlLanguage];
    case "text":
      return [];
  }
}

import {
  autocompletion,
  completionStatus,
  pickedCompletion,
  startCompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { StateEffect, type Extension } from "@codemirror/state";
import { hoverTooltip, ViewPlugin, type EditorView, type Tooltip, type ViewUpdate } from "@codemirror/view";
import { clock } from "../../base/clock.ts";
import { showProblems } from "../problems.ts";
import type { KqlCompletion, KqlCompletions } from "./kql-protocol.ts";
import { kqlService, type KqlContext } from "./kql-service.ts";

/** Marks come when somebody stops typing. */
const PAUSE_MS = 400;
/** Longer texts are edited without help: each analysis reads all of the text. */
const LONGEST_TEXT = 50_000;

/** The service reads beside the page, so nothing is gained by waiting for the next key; the editor's own pause is 100 ms. */
const TYPING_PAUSE_MS = 20;

/** What the text is read against is another. */
const contextChanged = StateEffect.define();

/**
 * Completion, marks and descriptions of names in a text in KQL, read against what `context` gives. The service is loaded
 * when the text is first edited, at once where it was edited before this.
 */
export function kqlSupport(context: () => KqlContext, isEdited: () => boolean): Extension {
  return [
    autocompletion({
      override: [(at) => complete(at, context())],
      icons: false,
      maxRenderedOptions: 100,
      activateOnTypingDelay: TYPING_PAUSE_MS,
    }),
    hoverTooltip((view, pos) => describe(view, pos, context())),
    ViewPlugin.define((view) => {
      if (isEdited() && view.state.doc.length <= LONGEST_TEXT) kqlService.start();
      return new Marks(view, context);
    }),
  ];
}

/** To be called when `context` gives another: marks and an open list are made anew, one that was asked for before as well. */
export function readAgain(view: EditorView): void {
  view.dispatch({ effects: contextChanged.of(null) });
  if (completionStatus(view.state) !== null) startCompletion(view);
}

async function complete(at: CompletionContext, context: KqlContext): Promise<CompletionResult | null> {
  const { state, pos, explicit } = at;
  if (state.doc.length > LONGEST_TEXT) return null;
  const isWanted = explicit || at.matchBefore(/[\p{L}_][\p{L}\p{N}_]*|\|\s*/u) !== null;
  if (!isWanted) return null;
  const found = await kqlService.ask({ kind: "complete", text: state.doc.toString(), at: pos }, context);
  if (found === undefined || at.aborted || found.options.length === 0) return null;
  // Operators of pipes have dashes in their names; anywhere else a dash subtracts.
  const isOperator = found.options.every(({ kind }) => kind === "operator");
  return {
    from: Math.min(found.from, pos),
    to: Math.max(found.to, pos),
    options: found.options.map(optionOf),
    ...validityOf(found, isOperator ? /^[a-z-]*$/ : /^[\p{L}_][\p{L}\p{N}_]*$/u),
  };
}

/** For how long the list serves while more is typed. */
function validityOf({ typed, isWhole }: KqlCompletions, form: RegExp): Pick<CompletionResult, "validFor"> {
  if (typed === undefined) return { validFor: form };
  if (isWhole !== true) return {};
  return { validFor: (text) => text.startsWith(typed) && form.test(text) };
}

function optionOf(option: KqlCompletion): Completion {
  const { label, shown, kind, order } = option;
  return {
    label,
    ...(shown !== undefined && { displayLabel: shown }),
    detail: kind,
    sortText: order,
    // What the service lists first: columns before functions before words.
    boost: RANKS[kind] ?? 0,
    apply: (view, completion, from, to) => insert(view, option, { completion, from, to }),
  };
}

const RANKS: Readonly<Partial<Record<KqlCompletion["kind"], number>>> = {
  column: 4,
  variable: 3,
  table: 2,
  aggregate: 1,
};

type Place = { completion: Completion; from: number; to: number };

function insert(
  view: EditorView,
  { before, after, isContinued }: KqlCompletion,
  { completion, from, to }: Place,
): void {
  const next = view.state.sliceDoc(to, to + 1);
  // Brackets and spaces that are there already stay the only ones.
  const isThere = before !== "" && before.endsWith(next) && /[( "]/.test(next);
  const written = isThere ? before.slice(0, -1) : before + after;
  view.dispatch({
    changes: { from, to, insert: written },
    selection: { anchor: from + before.length },
    annotations: pickedCompletion.of(completion),
    userEvent: "input.complete",
    scrollIntoView: true,
  });
  if (isContinued) startCompletion(view);
}

async function describe(view: EditorView, pos: number, context: KqlContext): Promise<Tooltip | null> {
  const { doc } = view.state;
  if (!kqlService.isReady || doc.length > LONGEST_TEXT) return null;
  const found = await kqlService.ask({ kind: "describe", text: doc.toString(), at: pos }, context);
  if (found === undefined || !view.state.doc.eq(doc)) return null;
  const create = () => {
    const dom = document.createElement("div");
    dom.className = "cm-about";
    dom.textContent = found.text;
    return { dom };
  };
  return { pos: found.from, end: found.to, create };
}

/** Marks what is wrong when the text has rested for a moment. */
class Marks {
  readonly #view: EditorView;
  readonly #context: () => KqlContext;
  readonly #endReady: () => void;
  #cancel: () => void = () => {};
  #isGone = false;

  constructor(view: EditorView, context: () => KqlContext) {
    this.#view = view;
    this.#context = context;
    // A text that was not edited is marked as well, once the service is there for another reason.
    this.#endReady = kqlService.onReady(() => this.#later());
    if (kqlService.isReady) this.#later();
  }

  update({ docChanged, state, transactions }: ViewUpdate): void {
    if (docChanged && state.doc.length <= LONGEST_TEXT) kqlService.start();
    if (docChanged || transactions.some(({ effects }) => effects.some((one) => one.is(contextChanged)))) this.#later();
  }

  destroy(): void {
    this.#isGone = true;
    this.#cancel();
    this.#endReady();
  }

  #later(): void {
    this.#cancel();
    this.#cancel = clock.after(PAUSE_MS, () => void this.#mark());
  }

  async #mark(): Promise<void> {
    const { doc } = this.#view.state;
    const isRead = kqlService.isReady && doc.length <= LONGEST_TEXT;
    const found = isRead ? await kqlService.ask({ kind: "problems", text: doc.toString() }, this.#context()) : [];
    if (this.#isGone || !this.#view.state.doc.eq(doc)) return;
    showProblems(this.#view, "service", found ?? []);
  }
}

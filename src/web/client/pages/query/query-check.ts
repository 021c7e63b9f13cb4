import type { Text } from "@codemirror/state";
import { requestJson } from "../../base/api.ts";
import type { EditorHandle } from "../../editor/code-mirror.ts";

export type CheckedTable = { database: string; table: string; extents: number; extents_total: number; bytes: number };

/** The answer of `POST /v1/query/check`, as far as it is shown. */
type QueryCheck = { diagnostics: readonly Diagnostic[]; tables: readonly CheckedTable[] };

type Diagnostic = {
  message: string;
  /** In UTF-16 units of the text that was sent. */
  from: { offset: number };
  to: { offset: number };
  suggestion?: string;
  hint?: string;
};

/** What is wrong, by its place in the editor: offsets from 0, lines and columns from 1. */
export type Problem = { from: number; to: number; line: number; column: number; message: string };

/** What was sent, and where it begins in the editor. */
export type CheckedText = {
  editor: EditorHandle;
  text: string;
  from: number;
  language: "sql" | "kql";
  database: string;
};

/** Problems are none where the text is right; tables are those that it was planned to read. */
export type CheckFindings = { problems: readonly Problem[]; tables: readonly CheckedTable[] };

/** Has the server check a text without running it. Rejects with an `ApiError` where nobody can say whether it is right. */
export async function checkQuery(asked: CheckedText, signal: AbortSignal): Promise<CheckFindings> {
  const { editor, text, from, language, database } = asked;
  // A session that has ended is renewed when the query is run: nobody is to be asked for a password while they type.
  const { diagnostics, tables } = await requestJson<QueryCheck>("/v1/query/check", {
    json: { query: text, language, database },
    signal,
    isQuiet: true,
  });
  const { doc } = editor.view.state;
  const problems = diagnostics.map((diagnostic) => problemOf(diagnostic, from, doc));
  return { problems, tables };
}

function problemOf({ from, to, message, suggestion, hint }: Diagnostic, textFrom: number, doc: Text): Problem {
  const at = Math.min(textFrom + from.offset, doc.length);
  const line = doc.lineAt(at);
  // Most messages have the suggestion in them.
  const isNew = suggestion !== undefined && !message.includes(suggestion);
  const said = [message, ...(isNew ? [`did you mean ${suggestion}?`] : []), ...(hint === undefined ? [] : [hint])];
  return {
    from: at,
    to: Math.min(textFrom + to.offset, doc.length),
    line: line.number,
    // Columns count characters, as the errors of a run do.
    column: Array.from(line.text.slice(0, at - line.from)).length + 1,
    message: said.join("; "),
  };
}

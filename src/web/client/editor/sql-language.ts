import { StreamLanguage, type StreamParser } from "@codemirror/language";

/**
 * The colours of SQL, by a tokenizer of this file: the grammar of `@codemirror/lang-sql` is 14 kB more and has other
 * dialects. It knows words, not statements: what is wrong is said by the server.
 */
const WORDS = new Set(
  `all and any anti array as asc asof at between by case cast collate column create cross cube current desc describe
  distinct else end escape except exclude exists explain false filter first following for from full glob group grouping
  groups having ilike in inner intersect interval into is isnull join last lateral left like limit map materialized
  natural not notnull null nulls offset on or order outer over partition pivot positional preceding qualify range
  recursive replace respect right rollup row rows sample select semi set sets show similar struct summarize table
  tablesample then ties to true try_cast unbounded union unpivot using values when where window with within without`.split(
    /\s+/,
  ),
);

const TYPES = new Set(
  `bigint blob bool boolean char date decimal double dynamic float hugeint int integer json numeric real smallint string
  text time timestamp timestamptz tinyint ubigint uinteger usmallint utinyint uuid varchar`.split(/\s+/),
);

const VALUES = new Set(["true", "false", "null"]);

/** Inside of what a line may begin. */
type State = { comments: number; quote: "'" | '"' | "$$" | undefined };

export const sqlParser: StreamParser<State> = {
  name: "sql",
  startState: () => ({ comments: 0, quote: undefined }),
  token(stream, state) {
    if (state.comments > 0) return comment(stream, state);
    if (state.quote !== undefined) return quoted(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match("--")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.comments = 1;
      return comment(stream, state);
    }
    for (const quote of ["'", '"', "$$"] as const) {
      if (!stream.match(quote)) continue;
      state.quote = quote;
      return quoted(stream, state);
    }
    if (stream.match(/^(?:0x[\da-f]+|(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:e[+-]?\d+)?)/i)) return "number";
    if (stream.match(/^[\p{L}_][\p{L}\p{N}_$]*/u)) return word(stream);
    if (stream.match(/^[$?:]\w+/)) return "atom";
    if (stream.match(/^[-+*/%<>=!|&^~:]+/)) return "operator";
    stream.next();
    return null;
  },
  languageData: {
    commentTokens: { line: "--", block: { open: "/*", close: "*/" } },
    closeBrackets: { brackets: ["(", "[", "{", "'", '"'] },
  },
};

type Stream = Parameters<NonNullable<StreamParser<State>["token"]>>[0];

function word(stream: Stream): string {
  const text = stream.current().toLowerCase();
  if (VALUES.has(text)) return "atom";
  if (WORDS.has(text)) return "keyword";
  if (stream.match(/^\s*\(/, false)) return "variableName.function";
  return TYPES.has(text) ? "typeName" : "variableName";
}

/** Comments of this form hold others. */
function comment(stream: Stream, state: State): string {
  while (state.comments > 0 && !stream.eol()) {
    if (stream.match("/*")) state.comments++;
    else if (stream.match("*/")) state.comments--;
    else stream.next();
  }
  return "comment";
}

/** A quote that stands twice is one of the text. */
function quoted(stream: Stream, state: State): string {
  const quote = state.quote ?? "'";
  while (!stream.eol()) {
    if (stream.match(quote)) {
      if (quote !== "$$" && stream.match(quote)) continue;
      state.quote = undefined;
      break;
    }
    stream.next();
  }
  return quote === '"' ? "variableName" : "string";
}

export const sqlLanguage = StreamLanguage.define(sqlParser);

import { StreamLanguage, type StreamParser } from "@codemirror/language";

/**
 * The colours of KQL before its service is there, and without it: a tokenizer of words, as that of SQL. What is wrong is
 * said by the service and by the server.
 */
const WORDS = new Set(
  `and as asc between by contains contains_cs count datatable desc distinct endswith endswith_cs evaluate extend false
  filter find from getschema has has_all has_any has_cs hasprefix hasprefix_cs hassuffix hassuffix_cs in inner invoke join
  kind leftanti leftouter leftsemi let limit lookup make-series matches mv-apply mv-expand not nulls of on or order parse
  parse-kv parse-where partition print project project-away project-keep project-rename project-reorder range regex render
  sample sample-distinct search serialize set sort startswith startswith_cs step summarize take to top top-hitters
  top-nested true typeof union where with`.split(/\s+/),
);

const TYPES = new Set(
  "bool boolean date datetime decimal double dynamic guid int long real string time timespan uuid".split(" "),
);

const VALUES = new Set(["true", "false", "null"]);

/** Inside of what a line may begin: a text in three quotes. */
type State = { fence: "```" | "~~~" | undefined };

export const kqlParser: StreamParser<State> = {
  name: "kql",
  startState: () => ({ fence: undefined }),
  token(stream, state) {
    if (state.fence !== undefined) return fenced(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    for (const fence of ["```", "~~~"] as const) {
      if (!stream.match(fence)) continue;
      state.fence = fence;
      return fenced(stream, state);
    }
    // A backslash is a character of a text that begins with @, where a quote stands twice instead.
    if (stream.match(/^[hH]?@(?:"(?:[^"]|"")*"?|'(?:[^']|'')*'?)/)) return "string";
    if (stream.match(/^[hH]?(?:"(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$))/)) return "string";
    if (stream.match(/^(?:0x[\da-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+|ms|microseconds?|ticks?|[dhms])?)(?![\p{L}\p{N}_])/iu)) {
      return "number";
    }
    if (stream.match(/^[\p{L}_$][\p{L}\p{N}_]*/u)) return word(stream);
    if (stream.match(/^\d[\p{L}\p{N}_]*/u)) return "variableName";
    if (stream.match(/^![\p{L}_~]+/u) || stream.match(/^[-+*/%<>=!|~:?]+/)) return "operator";
    stream.next();
    return null;
  },
  languageData: {
    commentTokens: { line: "//" },
    closeBrackets: { brackets: ["(", "[", "{", "'", '"'] },
  },
};

type Stream = Parameters<NonNullable<StreamParser<State>["token"]>>[0];

function word(stream: Stream): string {
  const start = stream.current();
  // Names have no dashes, some operators do: `project-away`, `mv-expand`.
  const [rest] = (stream.match(/^(?:-[a-z]+)+/, false) as RegExpMatchArray | null) ?? [];
  if (rest !== undefined && WORDS.has(start + rest)) {
    stream.match(rest);
    return "keyword";
  }
  const isCalled = stream.match(/^\s*\(/, false) !== null;
  if (VALUES.has(start)) return "atom";
  if (TYPES.has(start)) return "typeName";
  // `count` and `range` are operators, and functions where they are called.
  if (WORDS.has(start) && !(isCalled && CALLED.has(start))) return "keyword";
  return isCalled ? "variableName.function" : "variableName";
}

const CALLED = new Set(["count", "range", "not"]);

function fenced(stream: Stream, state: State): string {
  const { fence = "```" } = state;
  while (!stream.eol()) {
    if (stream.match(fence)) {
      state.fence = undefined;
      break;
    }
    stream.next();
  }
  return "string";
}

export const kqlLanguage = StreamLanguage.define(kqlParser);

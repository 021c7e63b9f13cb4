import * as kinds from "../../config/kinds.ts";

const MAX_WORDS = 100;
const MAX_WORD_CHARS = 4_096;

/** A program with its arguments, which no shell reads. */
export const command: kinds.Kind<readonly string[]> = {
  accepts: "a program and its arguments, separated by blanks; single or double quotes keep blanks in an argument",
  label: "command",
  parse: (text) => checked(wordsIn(text)),
  parseNative: (value) => checked(kinds.textsIn(value)),
  format: (words) => words.map(quoted).join(" "),
};

const WORD = /\s*((?:[^\s"']|"[^"]*"|'[^']*')+)/uy;

function wordsIn(text: string): string[] | undefined {
  const words: string[] = [];
  const trimmed = text.trim();
  WORD.lastIndex = 0;
  while (WORD.lastIndex < trimmed.length) {
    const [, word] = WORD.exec(trimmed) ?? [];
    if (word === undefined) return undefined;
    words.push(word.replaceAll(/"([^"]*)"|'([^']*)'/gu, (_all, a?: string, b?: string) => a ?? b ?? ""));
  }
  return words;
}

function checked(words: string[] | undefined): string[] | undefined {
  if (words === undefined || words.length > MAX_WORDS || (words[0] ?? "") === "") return undefined;
  return words.every((word) => word.length <= MAX_WORD_CHARS && !word.includes("\0")) ? words : undefined;
}

/** An argument of TOML may have both quotes; such a one is shown in pieces. */
function quoted(word: string): string {
  if (word !== "" && !/[\s"']/u.test(word)) return word;
  return (
    word
      .split(/(")/u)
      .map((piece) => (piece === '"' ? `'"'` : piece === "" ? "" : `"${piece}"`))
      .join("") || '""'
  );
}

/** Names of variables of the environment. */
export const variableNames = kinds.listOf({
  item: (text) => (/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(text) ? text : undefined),
  accepts: "names of environment variables, separated by commas",
  label: "list of names",
});

/** Where something is reached, or that it is not there. */
export const urlOrOff: kinds.Kind<string> = {
  ...kinds.baseUrl,
  accepts: `${kinds.baseUrl.accepts}, or off`,
  label: "URL, `off`",
  parse: (text, context) => (text.toLowerCase() === "off" ? "off" : kinds.baseUrl.parse(text, context)),
};

/** Which columns of a log say how bad a row is and what it is about, by the names that loggers use; most usual first. */
const LEVELS = ["level", "severity", "severity_text", "log_level", "loglevel", "lvl", "status"];
const MESSAGES = ["body", "message", "msg", "text", "line", "log", "event"];

/** The column with the level of each row, such as `error`. */
export function levelOf<T extends Named>(columns: readonly T[]): T | undefined {
  return firstNamed(columns, LEVELS);
}

/** The column with the message of each row. */
export function messageOf<T extends Named>(columns: readonly T[]): T | undefined {
  return firstNamed(columns, MESSAGES);
}

type Named = { readonly name: string };

function firstNamed<T extends Named>(columns: readonly T[], names: readonly string[]): T | undefined {
  return names
    .map((name) => columns.find((column) => column.name.toLowerCase() === name))
    .find((column) => column !== undefined);
}

/** By the words that loggers use, and the numbers of HTTP. */
export function severityOf(level: string): "bad" | "warn" | "good" | "faint" {
  if (/^(err|fatal|crit|alert|emerg|panic|fail|5\d\d$)/i.test(level)) return "bad";
  if (/^(warn|4\d\d$)/i.test(level)) return "warn";
  return /^(debug|trace|verbose)/i.test(level) ? "faint" : "good";
}

import { cutWithin } from "../../../core/cut-text.ts";
import { maskSecrets } from "../../memory/secrets.ts";
import { PIPELINE_LIMITS } from "../limits.ts";

/**
 * What a row of the firehose says of failures, in columns of these names, whatever else it has. All of it comes from
 * outside: it is cut, on one line, and free of secrets of known forms.
 */
export type Observation = {
  at: string;
  /** Empty where the row says none. */
  repository: string;
  commits: string[];
  files: string[];
  /** Undefined where nothing failed, or the row does not say what. */
  failure: { message: string } | undefined;
};

const STATUSES = ["status", "conclusion", "outcome", "result"] as const;
const FAILED = new Set(["failed", "failure", "fail", "error", "errored", "timed_out", "timeout", "broken", "crashed"]);
const LEVELS = ["level", "severity"] as const;
const SEVERE = new Set(["error", "fatal", "critical", "panic", "emergency", "alert"]);
/** Labels that say failure themselves, and those of which a severe level is one. */
const FAILURE_LABEL = /(?:^|[_.:/ -])fail(?:ed|ure|ures)?$/;
const CI_LABEL = /^(?:ci|build|test|tests|deploy)(?:$|[_.:/ -])/;
const REPOSITORIES = ["repository", "repo", "project"] as const;
const COMMITS = ["commit", "commit_sha", "sha"] as const;
const FILES = ["files", "file", "path"] as const;
const MESSAGES = ["message", "error", "body", "text"] as const;

type Row = Readonly<Record<string, unknown>>;

export function observed(row: Row): Observation {
  const message = isFailure(row) ? firstText(row, MESSAGES) : undefined;
  const words = message === undefined ? "" : lineOf(message, PIPELINE_LIMITS.messageChars);
  return {
    at: timeOf(row["at"]),
    repository: lineOf(firstText(row, REPOSITORIES) ?? "", PIPELINE_LIMITS.repositoryChars),
    commits: commitsIn(row),
    files: filesIn(row),
    failure: words === "" ? undefined : { message: words },
  };
}

function isFailure(row: Row): boolean {
  const word = (name: string): string => {
    const value = row[name];
    return typeof value === "string" ? value.slice(0, 100).trim().toLowerCase() : "";
  };
  const label = word("label");
  if (STATUSES.some((name) => FAILED.has(word(name))) || FAILURE_LABEL.test(label)) return true;
  return CI_LABEL.test(label) && LEVELS.some((name) => SEVERE.has(word(name)));
}

function commitsIn(row: Row): string[] {
  const id = firstText(row, COMMITS)?.trim().toLowerCase();
  return id !== undefined && /^[0-9a-f]{7,64}$/.test(id) ? [id] : [];
}

/** A list, as JSON too, or names with commas or line ends between them. */
function filesIn(row: Row): string[] {
  const value = FILES.map((name) => row[name]).find((each) => Array.isArray(each) || isText(each));
  const names = Array.isArray(value) ? value.filter(isText) : isText(value) ? namesIn(value) : [];
  const cut = names.slice(0, PIPELINE_LIMITS.files).map((name) => lineOf(name, PIPELINE_LIMITS.fileChars));
  return [...new Set(cut.filter((name) => name !== ""))];
}

function namesIn(text: string): string[] {
  const beginning = text.slice(0, PIPELINE_LIMITS.messageChars);
  return listIn(beginning) ?? beginning.split(/[,\n]/);
}

function listIn(text: string): string[] | undefined {
  if (!text.trimStart().startsWith("[")) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed.filter(isText) : undefined;
  } catch {
    // No JSON: a name may begin so.
    return undefined;
  }
}

function firstText(row: Row, names: readonly string[]): string | undefined {
  return names.map((name) => row[name]).find(isText);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

/** Colours and cursor moves of a terminal. */
// oxlint-disable-next-line no-control-regex
const ESCAPES = /\u001b\[[0-9;?]{0,32}[A-Za-z]/g;

/**
 * On one line, without what is not shown; that goes first, as it would hide a secret. What is cut is masked before, else half
 * a secret would stay.
 */
function lineOf(text: string, maxChars: number): string {
  const beginning = text.slice(0, PIPELINE_LIMITS.messageChars).toWellFormed();
  const shown = beginning
    .replace(ESCAPES, "")
    .replaceAll(/\p{Cf}/gu, "")
    .replaceAll(/\p{Cc}/gu, " ");
  return cutWithin(maskSecrets(shown).replaceAll(/\s+/gu, " ").trim(), maxChars);
}

/** RFC 3339, so that times compare as texts. */
function timeOf(value: unknown): string {
  const ms = typeof value === "string" ? Date.parse(/[Zz]|[+-]\d\d:?\d\d$/.test(value) ? value : `${value}Z`) : NaN;
  return Number.isNaN(ms) ? "" : new Date(ms).toISOString();
}

import { isMap, parseDocument } from "yaml";
import { SKILL_LIMITS } from "./limits.ts";

/** What a `SKILL.md` says, or what is wrong with it. */
export type ParsedSkill =
  | { ok: true; name: string; description: string; body: string }
  | { ok: false; name: string | undefined; description: string | undefined; problems: string[] };

const FRONT_MATTER = /^\ufeff?---[ \t]*\r?\n([\s\S]*?)^---[ \t]*(?:\r?\n|$)/m;
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
/** Far fewer than would make a document grow without end. */
const MAX_ALIASES = 10;

/**
 * Reads the text of a `SKILL.md`: front matter in YAML with `name` and `description`, and the body behind it. Other members
 * are for other programs.
 */
export function parseSkill(text: string): ParsedSkill {
  const match = FRONT_MATTER.exec(text);
  if (match?.index !== 0) return broken("there is no front matter: the file begins with a line `---`");
  const members = membersOf(match[1] ?? "");
  if (members === undefined) return broken("the front matter is no YAML with members");
  const name = nameIn(members["name"]);
  const description = descriptionIn(members["description"]);
  const body = text.slice(match[0].length).trim();
  const problems = [
    name.problem,
    description.problem,
    body === "" ? "there is no text below the front matter" : undefined,
  ];
  const found = problems.filter((problem) => problem !== undefined);
  if (name.text !== undefined && description.text !== undefined && found.length === 0) {
    return { ok: true, name: name.text, description: description.text, body };
  }
  return { ok: false, name: name.text, description: description.text, problems: found };
}

function broken(problem: string): ParsedSkill {
  return { ok: false, name: undefined, description: undefined, problems: [problem] };
}

/** Undefined for what is no YAML, or no map. */
function membersOf(yaml: string): Record<string, unknown> | undefined {
  const document = parseDocument(yaml, { logLevel: "silent" });
  if (document.errors.length > 0 || !isMap(document.contents)) return undefined;
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES }) as Record<string, unknown>;
  } catch {
    // Aliases that would grow without end.
    return undefined;
  }
}

type Member = { text?: string; problem?: string };

function nameIn(value: unknown): Member {
  if (value === undefined || value === null || value === "") return { problem: "there is no name" };
  if (typeof value === "string" && value.length <= SKILL_LIMITS.nameChars && NAME.test(value)) return { text: value };
  return {
    problem: `the name must be lower-case words with hyphens between them, at most ${SKILL_LIMITS.nameChars} characters`,
  };
}

/** On one line: it stands in a list that models read. */
function descriptionIn(value: unknown): Member {
  const text = typeof value === "string" ? value.replace(/[\p{Cc}\s]+/gu, " ").trim() : "";
  if (text === "") return { problem: "there is no description" };
  if (text.length <= SKILL_LIMITS.descriptionChars) return { text };
  return {
    problem: `the description has ${text.length} characters; at most ${SKILL_LIMITS.descriptionChars} are accepted`,
  };
}

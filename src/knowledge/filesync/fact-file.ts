import { isMap, parseDocument, type Document } from "yaml";

/**
 * A file of a coding agent's memory: one fact, with front matter in YAML.
 *
 *     ---
 *     name: port-of-the-gateway
 *     description: Where the gateway listens
 *     metadata:
 *       type: project
 *     ---
 *     On port 8443. See [[deployment]].
 */
export type Fact = {
  /** On one line; what links name it by. */
  name: string;
  /** On one line; empty where there is none. */
  description: string;
  /** `user`, `feedback`, `project`, `reference`, or a word that this program does not know. */
  type: string;
  body: string;
};

export type FactFile = Fact & {
  /** The memory that this program wrote the file from. */
  nodeId: string | undefined;
};

const FRONT_MATTER = /^---[ \t]*\r?\n([\s\S]*?)^---[ \t]*(?:\r?\n|$)/m;
const DEFAULT_TYPE = "project";
/** Aliases that a document may resolve: far fewer than would make it grow without end. */
const MAX_ALIASES = 10;

/** Reads the text of a file of that name. Undefined where its front matter is no YAML with members. */
export function parseFact(text: string, file: string): FactFile | undefined {
  const stem = stemOf(file);
  const matter = frontMatterOf(text);
  if (matter === undefined) {
    return { name: stem, description: "", type: DEFAULT_TYPE, body: text.trim(), nodeId: undefined };
  }
  const document = documentOf(matter.yaml);
  if (document === undefined) return undefined;
  const name = scalarIn(document, ["name"]);
  return {
    name: name === "" ? stem : name,
    description: scalarIn(document, ["description"]),
    type: scalarIn(document, ["metadata", "type"]) || DEFAULT_TYPE,
    body: matter.body.trim(),
    nodeId: scalarIn(document, ["metadata", "engine_id"]) || undefined,
  };
}

/**
 * The text of a file that says the fact. Of the file's text before, what else its front matter has stays, comments too.
 * `nodeId`: the memory that it is written from, where nobody else wrote it first.
 */
export function printFact(
  { name, description, type, body }: Fact,
  { before, nodeId }: { before?: string; nodeId?: string } = {},
): string {
  const matter = before === undefined ? undefined : frontMatterOf(before);
  const document = (matter === undefined ? undefined : documentOf(matter.yaml)) ?? parseDocument("{}");
  if (isMap(document.contents)) document.contents.flow = false;
  setIn(document, ["name"], name);
  if (description !== "" || document.has("description")) setIn(document, ["description"], description);
  if (!isMap(document.get("metadata", true))) document.set("metadata", document.createNode({}));
  setIn(document, ["metadata", "type"], type);
  if (nodeId !== undefined) setIn(document, ["metadata", "engine_id"], nodeId);
  return `---\n${document.toString({ lineWidth: 0 }).trimEnd()}\n---\n\n${body}\n`;
}

/** What a file is called without its ending, where nothing in it says. */
export function stemOf(file: string): string {
  return file.replace(/\.md$/, "");
}

/** The names in `[[…]]` of a text. */
export function linksIn(body: string): string[] {
  const names = Array.from(body.matchAll(/\[\[([^[\]\n|]{1,200})(?:\|[^[\]\n]{0,200})?\]\]/g), ([, name = ""]) =>
    name.trim(),
  );
  return [...new Set(names.filter((name) => name !== ""))];
}

function frontMatterOf(text: string): { yaml: string; body: string } | undefined {
  // Only at the very beginning, after a byte-order mark.
  const start = text.startsWith("\uFEFF") ? 1 : 0;
  if (!text.startsWith("---", start)) return undefined;
  const rest = text.slice(start);
  const found = FRONT_MATTER.exec(rest);
  if (found === null || found.index !== 0) return undefined;
  return { yaml: found[1] ?? "", body: rest.slice(found[0].length) };
}

function documentOf(yaml: string): Document.Parsed | undefined {
  const document = parseDocument(yaml, { prettyErrors: false, schema: "core" });
  if (document.errors.length > 0) return undefined;
  if (document.contents === null) return parseDocument("{}");
  try {
    // Aliases without end are refused here, before anything is asked.
    document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch {
    return undefined;
  }
  return isMap(document.contents) ? document : undefined;
}

/** A text on one line; empty for what is none. */
function scalarIn(document: Document.Parsed, path: readonly string[]): string {
  const value: unknown = document.getIn(path);
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return "";
  return String(value)
    .replaceAll(/\p{Cc}+/gu, " ")
    .replaceAll(/\s+/gu, " ")
    .trim();
}

/** Left as it is written where it says the same. */
function setIn(document: Document.Parsed | Document, path: readonly string[], value: string): void {
  if (scalarIn(document as Document.Parsed, path) !== value) document.setIn(path, value);
}

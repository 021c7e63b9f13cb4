import { posix } from "node:path";
import type { Node, SourceFile, Violation } from "./source.ts";
import { isNode, lineOf, parse, walk } from "./source.ts";

/** Folders of `src/`, lowest first. Modules of one rank do not import each other. */
const RANKS = [
  ["core"],
  ["config"],
  ["format"],
  ["io"],
  ["catalog"],
  ["auth"],
  ["server"],
  ["fabric"],
  ["access", "ingest", "query", "compaction", "credentials", "sources", "knowledge", "sandbox"],
  ["cli", "web"],
];

/** Above all of `src/`: what is wired, and the tools and tests around it, which may use each other. */
const ROLES = RANKS.length;
const TOOLS = RANKS.length + 1;
const TOP: ReadonlyMap<string, number> = new Map([
  ["roles", ROLES],
  ["scripts", TOOLS],
  ["bench", TOOLS],
  ["test", TOOLS],
]);

/**
 * Imports that point up, or sideways. Every form counts: static, type-only, re-exports, `import()` as a value and as a
 * type, and files named by `new URL("./x.ts", import.meta.url)`, which is how threads are started. Throws when there
 * are no files of `src/`, so that the check cannot pass by looking in the wrong place.
 */
export function checkLayering(files: readonly SourceFile[]): Violation[] {
  if (!files.some((file) => file.path.startsWith("src/"))) throw new Error("the layering check saw no files");
  return files.flatMap((file) =>
    importsOf(file).flatMap(({ specifier, position }) => {
      const problem = problemOf(file.path, specifier);
      return problem === undefined ? [] : [{ path: file.path, line: lineOf(file.text, position), message: problem }];
    }),
  );
}

type Import = { specifier: string; position: number };

/** Everything a file imports, in whatever form; an `import()` of a computed name is reported as `*`. */
export function importsOf(file: SourceFile): Import[] {
  const found: Import[] = [];
  walk(parse(file), (node) => {
    const specifier = specifierOf(node);
    if (specifier !== undefined) found.push({ specifier, position: node.start });
  });
  return found;
}

function specifierOf(node: Node): string | undefined {
  switch (node.type) {
    case "ImportDeclaration":
    case "ExportNamedDeclaration":
    case "ExportAllDeclaration":
    case "TSImportType":
      return literalOf(node.source);
    case "ImportExpression":
      return literalOf(node.source) ?? "*";
    case "TSExternalModuleReference":
      return literalOf(node.expression);
    case "NewExpression":
      return fileUrlOf(node);
    default:
      return undefined;
  }
}

function literalOf(value: unknown): string | undefined {
  return isNode(value) && value.type === "Literal" && typeof value.value === "string" ? value.value : undefined;
}

function fileUrlOf(node: Node): string | undefined {
  const [name, base] = node.arguments as unknown[];
  const isUrl = isNode(node.callee) && node.callee.type === "Identifier" && node.callee.name === "URL";
  if (!isUrl || !isNode(base) || base.type !== "MemberExpression") return undefined;
  return isNode(base.object) && base.object.type === "MetaProperty" ? literalOf(name) : undefined;
}

function problemOf(importer: string, specifier: string): string | undefined {
  if (specifier === "*") return "imports a computed name, which no check can follow";
  if (!specifier.startsWith(".")) return undefined;
  const imported = posix.join(posix.dirname(importer), specifier);
  const [from, to] = [placeOf(importer), placeOf(imported)];
  if (from === undefined) return `${importer} is in no folder of the layering`;
  // Files of the repository itself (package.json).
  if (to === undefined) return imported.startsWith("src/") ? `${imported} is in no folder of the layering` : undefined;
  if (to.rank > from.rank) return `${from.folder} imports ${specifier} from ${to.folder}, which is above it`;
  if (to.rank === from.rank && to.folder !== from.folder && to.rank !== TOOLS) {
    return `${from.folder} imports ${specifier} from ${to.folder}, which is of the same rank`;
  }
  return undefined;
}

function placeOf(path: string): { folder: string; rank: number } | undefined {
  const [first = "", second = ""] = path.split("/");
  if (first === "src") {
    const rank = RANKS.findIndex((folders) => folders.includes(second));
    return rank === -1 ? undefined : { folder: second, rank };
  }
  const rank = TOP.get(first);
  return rank === undefined ? undefined : { folder: first, rank };
}

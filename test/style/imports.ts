import { posix } from "node:path";
import type { Node, SourceFile } from "./source.ts";
import { isNode, parse, walk } from "./source.ts";

/** One import of a file, as it is written. */
export type Import = { specifier: string; position: number };

/** Several checks ask for those of the same files. */
const knownImports = new WeakMap<SourceFile, readonly Import[]>();

/**
 * Everything a file imports, in whatever form: static, type-only, re-exports, `import()` as a value and as a type, and
 * files named by `new URL("./x.ts", import.meta.url)`, which is how threads are started. An `import()` of a computed
 * name is reported as `*`.
 */
export function importsOf(file: SourceFile): readonly Import[] {
  const known = knownImports.get(file);
  if (known !== undefined) return known;
  const found: Import[] = [];
  walk(parse(file), (node) => {
    const specifier = specifierOf(node);
    if (specifier !== undefined) found.push({ specifier, position: node.start });
  });
  knownImports.set(file, found);
  return found;
}

/** The file of this repository that an import names, or undefined if it names a package. */
export function importedPath(importer: string, specifier: string): string | undefined {
  return specifier.startsWith(".") ? posix.join(posix.dirname(importer), specifier) : undefined;
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

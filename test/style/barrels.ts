import type { Node, SourceFile, Violation } from "./source.ts";
import { parse } from "./source.ts";

/** Files that only hand on what others export, and files named `index`. */
export function checkBarrels(files: readonly SourceFile[]): Violation[] {
  return files.flatMap((file) => {
    const message = problemOf(file);
    return message === undefined ? [] : [{ path: file.path, line: 1, message }];
  });
}

function problemOf(file: SourceFile): string | undefined {
  if (/(^|\/)index\.[cm]?tsx?$/.test(file.path)) return "is named index: name it for what it holds";
  const statements = parse(file).body as Node[];
  const exportsSomething = statements.some(isReExport);
  const onlyHandsOn = statements.every((s) => isReExport(s) || s.type === "ImportDeclaration");
  return exportsSomething && onlyHandsOn ? "only re-exports: import from where things are" : undefined;
}

/** `export … from`, and `export { a }` without a declaration (in a file with no statements of its own: of an import). */
function isReExport(statement: Node): boolean {
  if (statement.type === "ExportAllDeclaration") return true;
  return statement.type === "ExportNamedDeclaration" && statement.declaration === null;
}

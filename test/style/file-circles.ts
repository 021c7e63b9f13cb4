import { importedPath } from "./imports.ts";
import type { SourceFile, Violation } from "./source.ts";
import { isTestSupport } from "./test-support.ts";

export type ImportAt = { file: SourceFile; specifier: string; line: number };

type Edge = { to: string; line: number };

/**
 * Circles of production files, also those that only close by a type or by an `import()`, which the linter leaves out.
 * Each circle is reported once, at the import that closes it.
 */
export function fileCircles(imports: readonly ImportAt[]): Violation[] {
  const next = edgesOf(imports);
  const finished = new Set<string>();
  const path: string[] = [];
  const found: Violation[] = [];
  const visit = (from: string): void => {
    path.push(from);
    for (const { to, line } of next.get(from) ?? []) {
      const start = path.indexOf(to);
      if (start !== -1) {
        const message = `closes a circle of files: ${[...path.slice(start), to].join(" imports ")}`;
        found.push({ path: from, line, message });
      } else if (!finished.has(to)) visit(to);
    }
    path.pop();
    finished.add(from);
  };
  for (const file of next.keys()) if (!finished.has(file)) visit(file);
  return found;
}

function edgesOf(imports: readonly ImportAt[]): Map<string, Edge[]> {
  const next = new Map<string, Edge[]>();
  for (const { file, specifier, line } of imports) {
    const to = importedPath(file.path, specifier);
    if (to === undefined || isTestSupport(file.path) || !/^(src|roles)\//.test(file.path)) continue;
    next.set(file.path, [...(next.get(file.path) ?? []), { to, line }]);
  }
  return next;
}

import { readFileSync, readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "vitest/node";

/**
 * Source files for the style checks. Every check is a pure function over files, so that its test can plant a violation.
 *
 * They are parsed by the parser that vitest exports (oxc): a real one, which keeps type imports, and no dependency of
 * its own. TypeScript 7 offers its parser only through a child process with an unstable protocol, and esbuild drops
 * type imports before one can see them.
 */
export type SourceFile = {
  /** Relative to the repository, with `/`. */
  path: string;
  text: string;
};

/** A finding: what to show, and where. */
export type Violation = { path: string; line: number; message: string };

export function showViolations(violations: readonly Violation[]): string {
  return violations.map((v) => `${v.path}:${v.line}: ${v.message}`).join("\n");
}

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** All TypeScript files below these folders of the repository. */
export function readSources(...folders: readonly string[]): SourceFile[] {
  return folders.flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /\.[cm]?tsx?$/.test(entry.name))
      .map((entry) => {
        const file = join(entry.parentPath, entry.name);
        return { path: relative(REPOSITORY, file).split(sep).join("/"), text: readFileSync(file, "utf8") };
      }),
  );
}

/** Tests may use what the program may not: files named so, what they stand on, and the suites that they share. */
export function isTest(file: SourceFile): boolean {
  return /(\.test|\btest-kit)\.ts$/.test(file.path) || /^import .* from "vitest";$/m.test(file.text);
}

/** A node of the syntax tree (ESTree with TypeScript's nodes); fields by name. */
export type Node = { type: string; start: number; end: number; [field: string]: unknown };

export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

export function parse(file: SourceFile): Node {
  return parseAst(file.text, { lang: file.path.endsWith("x") ? "tsx" : "ts" }, file.path) as unknown as Node;
}

/** Calls `visit` for every node below `root` with its parent and the field it stands in. */
export function walk(root: Node, visit: (node: Node, parent: Node | undefined, field: string) => void): void {
  const step = (node: Node, parent: Node | undefined, field: string): void => {
    visit(node, parent, field);
    for (const [name, value] of Object.entries(node)) {
      for (const child of Array.isArray(value) ? (value as unknown[]) : [value])
        if (isNode(child)) step(child, node, name);
    }
  };
  step(root, undefined, "");
}

/** 1-based line of a position. */
export function lineOf(text: string, position: number): number {
  let line = 1;
  for (let i = text.indexOf("\n"); i !== -1 && i < position; i = text.indexOf("\n", i + 1)) line++;
  return line;
}

import type { SourceFile, Violation } from "./source.ts";
import { isNode, isTest, lineOf, parse, walk } from "./source.ts";

/** Beyond these a file or function is taken apart; the aim is far below (150 and a dozen, rarely over 400 and 60). */
const FILE_LINES = 700;
const FUNCTION_LINES = 120;

export type Measured = { path: string; line: number; name: string; lines: number };

/** Files, the longest first. */
export function measureFiles(files: readonly SourceFile[]): Measured[] {
  const measured = files.map((file) => ({
    path: file.path,
    line: 1,
    name: "file",
    lines: lineOf(file.text, file.text.length),
  }));
  return measured.sort((a, b) => b.lines - a.lines);
}

/** Functions, the longest first. The callbacks of tests, which hold whole suites, are left out. */
export function measureFunctions(files: readonly SourceFile[]): Measured[] {
  const measured: Measured[] = [];
  for (const file of files.filter((f) => !isTest(f))) {
    walk(parse(file), (node, parent) => {
      if (!/^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)) return;
      const line = lineOf(file.text, node.start);
      const named = [node.id, parent?.key, parent?.id].find((n) => isNode(n));
      const name = named === undefined ? "(anonymous)" : String(named.name);
      measured.push({ path: file.path, line, name, lines: lineOf(file.text, node.end) - line + 1 });
    });
  }
  return measured.sort((a, b) => b.lines - a.lines);
}

export function checkLength(files: readonly SourceFile[]): Violation[] {
  const tooLong = [
    ...measureFiles(files).filter((m) => m.lines > FILE_LINES),
    ...measureFunctions(files).filter((m) => m.lines > FUNCTION_LINES),
  ];
  return tooLong.map(({ path, line, name, lines }) => ({ path, line, message: `${name} has ${lines} lines` }));
}

import { importedPath } from "./imports.ts";
import type { SourceFile } from "./source.ts";

/** Says what is wrong when a production file imports tests or what only tests may use. */
export function testSupportProblem(file: SourceFile, specifier: string): string | undefined {
  if (!/^(src|roles)\//.test(file.path) || isTestSupport(file.path)) return undefined;
  if (specifier === "vitest") return "imports vitest: name it *.test.ts, or *.test-kit.ts if tests share it";
  const imported = importedPath(file.path, specifier);
  if (imported === undefined || !isTestSupport(imported)) return undefined;
  return `imports ${specifier}, which is for tests only`;
}

/** Whether a path is that of a test or of what only tests use. */
export function isTestSupport(path: string): boolean {
  return /\.(test|test-kit)\.ts$/.test(path);
}

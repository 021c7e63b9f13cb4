import type { Node, SourceFile, Violation } from "./source.ts";
import { isNode, isTest, lineOf, parse, walk } from "./source.ts";

/**
 * What tests, benchmarks and scripts do to the computer on which they run. Hostile programs run in a cage that fails
 * closed (`cage.test-kit.ts`), signals go to processes that were checked (`signals.test-kit.ts`), and no folder is
 * removed in which something may be mounted (`removal.test-kit.ts`).
 *
 * A program that looks hostile and has an end by itself is allowed by a comment on its line or on one of the two above:
 * `// bounded: <by what>`.
 */
export function checkHazards(files: readonly SourceFile[]): Violation[] {
  return files
    .filter((file) => isTest(file) || /^(test|bench|scripts)\//.test(file.path))
    .filter((file) => !file.path.startsWith("test/style/"))
    .flatMap((file) => {
      const root = parse(file);
      const isCaged = importsOf(root).some(({ from }) => from.endsWith("/cage.test-kit.ts"));
      const sweeps = importsOf(root).some(({ names }) => names.includes("sweepMounts"));
      const found: Violation[] = [];
      walk(root, (node) => {
        const message =
          signalIn(file, node) ?? (isCaged ? undefined : hostileIn(file, node)) ?? removalIn(file, node, sweeps);
        if (message !== undefined && !isBoundedByWord(file.text, node))
          found.push({ path: file.path, line: lineOf(file.text, node.start), message });
      });
      return found;
    });
}

const KITS = {
  signals: "src/core/signals.test-kit.ts",
  cage: "src/sandbox/runtime/cage.test-kit.ts",
  removal: "src/sandbox/runtime/removal.test-kit.ts",
};

/** Words for a shell or Perl, by what makes them a hazard where nothing limits them. */
const HOSTILE: readonly (readonly [RegExp, string])[] = [
  [
    /\b(?:while|until)\s+(?::|true|false)\s*(?:;|$)|\bwhile\s*\(\s*1\s*\)|\bfor\s*\(\s*;\s*;\s*\)/m,
    "loops without end",
  ],
  [/(?:^|[=(!;{]|unless|if)\s*!?\s*fork\b(?!\s+(?:of|in|is)\b)|:\s*\(\)\s*\{|&\s*(?:exec\s+)?sh\s*$/m, "forks"],
  [/(?:\bcat|\bcp|\btee|<)\s+\/dev\/(?:zero|u?random|full)\b|\bdd\s+if=(?!.*\bcount=)|\bfallocate\b/, "fills a disk"],
  [/\byes\s*(?:[|>]|&&?\s*\w)|\bexec\s+"?yes\b/, "writes without end"],
  [/"\s*x\s*\(?\s*(?:1\s*<<|\d+\s*\*\s*\d)/, "fills memory"],
  [/\bpkill\b|\bkillall\b|\bkill\s+(?:-\w+\s+)+-1\b/, "kills by name, or everything"],
  [/\becho\s+(?:0|\$\$)\s*>/, "joins a cgroup by itself"],
];

function hostileIn(file: SourceFile, node: Node): string | undefined {
  if (file.path === KITS.cage) return undefined;
  const text = textOf(node);
  const what = text === undefined ? undefined : HOSTILE.find(([pattern]) => pattern.test(text))?.[1];
  return what && `a program ${what}: start it by spawnCaged, or in describeInCage, or say by what it is bounded`;
}

/** Of a string or a piece of a template. */
function textOf(node: Node): string | undefined {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type !== "TemplateElement") return undefined;
  return (node.value as { cooked?: string }).cooked;
}

/** `process.kill`, but for the question whether there is such a process, and to end oneself. */
function signalIn(file: SourceFile, node: Node): string | undefined {
  if (file.path === KITS.signals || node.type !== "MemberExpression") return undefined;
  if (!isNamed(node.object, "process") || !isNamed(node.property, "kill")) return undefined;
  const isHarmless = /^process\.kill\((?:\w+, 0|process\.pid, "\w+")\)/.test(file.text.slice(node.start));
  return isHarmless ? undefined : "process.kill takes 0 and -1 for many processes: use signalProcess or signalGroup";
}

function removalIn(file: SourceFile, node: Node, sweeps: boolean): string | undefined {
  if (!sweeps || file.path === KITS.removal || node.type !== "CallExpression") return undefined;
  if (!isNamed(node.callee, "rm") && !isNamed(node.callee, "rmSync")) return undefined;
  if (!/\brecursive: true\b/.test(file.text.slice(node.start, node.end))) return undefined;
  return "something may still be mounted there: use removeSwept or removeUnmounted";
}

function isNamed(node: unknown, name: string): boolean {
  return isNode(node) && node.type === "Identifier" && node.name === name;
}

const LINES_ABOVE = 2;

function isBoundedByWord(text: string, node: Node): boolean {
  let start = text.lastIndexOf("\n", node.start) + 1;
  for (let i = 0; i < LINES_ABOVE && start > 0; i++) start = text.lastIndexOf("\n", start - 2) + 1;
  const end = text.indexOf("\n", node.end);
  return /\/\/ bounded: \S/.test(text.slice(start, end === -1 ? undefined : end));
}

function importsOf(root: Node): { from: string; names: string[] }[] {
  return (root.body as Node[])
    .filter((statement) => statement.type === "ImportDeclaration")
    .map((statement) => ({
      from: String((statement.source as Node).value),
      names: (statement.specifiers as Node[]).map(({ local }) => String((local as Node).name)),
    }));
}

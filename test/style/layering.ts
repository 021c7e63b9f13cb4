import { fileCircles } from "./file-circles.ts";
import { importedPath, importsOf } from "./imports.ts";
import type { InnerRanks } from "./inner-layering.ts";
import { folderCircles, innerProblem } from "./inner-layering.ts";
import type { SourceFile, Violation } from "./source.ts";
import { lineOf } from "./source.ts";
import { testSupportProblem } from "./test-support.ts";

/** Folders of `src/`, lowest first. Modules of one rank do not import each other. */
const RANKS = [
  ["core"],
  ["config", "single-file"],
  ["format"],
  ["io"],
  ["db"],
  ["catalog"],
  ["auth"],
  ["server"],
  ["client"],
  ["fabric"],
  ["feature"],
  [
    "access",
    "ingest",
    "query",
    "compaction",
    "backup",
    "open-tables",
    "capacity",
    "credentials",
    "sources",
    "knowledge",
    "servers",
    "workbench",
    "sandbox",
    "install",
    "deploy",
  ],
  ["cli", "web"],
];

/**
 * The same inside a feature: its folders, lowest first. A feature that is named here has no other folders, and none of
 * its folders import each other in a circle, at any depth. Files directly in the feature's folder are above them all.
 */
const INNER_RANKS: InnerRanks = {
  query: [
    ["budgets", "parse", "stream", "system-tables"],
    ["kql"],
    ["contract"],
    ["errors"],
    ["resolve"],
    ["prune"],
    ["scan", "engines"],
    ["fetch", "translator", "exports"],
    ["tail", "explore"],
    ["routes", "commands"],
    ["flight"],
  ],
  knowledge: [
    ["memory"],
    ["dashboards", "graph", "filesync", "skills"],
    ["mcp"],
    ["agent"],
    ["dreaming"],
    ["pipelines"],
  ],
  sandbox: [["contract"], ["runtime"], ["network"], ["node", "control"], ["commands"]],
};

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
 * Imports that point up or sideways, between the folders of `src/` and inside each feature that declares ranks; circles
 * of folders inside those features; circles of files anywhere; production files that import test support. Throws when there are no files of
 * `src/`, so that the check cannot pass by looking in the wrong place.
 */
export function checkLayering(files: readonly SourceFile[], innerRanks: InnerRanks = INNER_RANKS): Violation[] {
  if (!files.some((file) => file.path.startsWith("src/"))) throw new Error("the layering check saw no files");
  const imports = files.flatMap((file) =>
    importsOf(file).map(({ specifier, position }) => ({ file, specifier, line: lineOf(file.text, position) })),
  );
  const wrong = imports.flatMap(({ file, specifier, line }) => {
    const message =
      problemOf(file.path, specifier) ??
      innerProblem(innerRanks, file.path, specifier) ??
      testSupportProblem(file, specifier);
    return message === undefined ? [] : [{ path: file.path, line, message }];
  });
  return [...wrong, ...folderCircles(Object.keys(innerRanks), imports), ...fileCircles(imports)];
}

function problemOf(importer: string, specifier: string): string | undefined {
  if (specifier === "*") return "imports a computed name, which no check can follow";
  const imported = importedPath(importer, specifier);
  if (imported === undefined) return undefined;
  const [from, to] = [placeOf(importer), placeOf(imported)];
  if (from === undefined) return `${importer} is in no folder of the layering`;
  // Files of the repository itself (package.json).
  if (to === undefined) return imported.startsWith("src/") ? `${imported} is in no folder of the layering` : undefined;
  // A test kit may assemble what the program itself assembles: the list of all tables, for example.
  if (to.rank === ROLES && importer.endsWith(".test-kit.ts")) return undefined;
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

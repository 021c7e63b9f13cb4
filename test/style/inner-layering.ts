import type { ImportAt } from "./file-circles.ts";
import { importedPath } from "./imports.ts";
import type { Violation } from "./source.ts";
import { isTestSupport } from "./test-support.ts";

/** The folders of features, lowest first, by feature. Folders of one rank do not import each other. */
export type InnerRanks = Readonly<Record<string, readonly (readonly string[])[]>>;

/** Says what is wrong with an import inside a feature that declares ranks, or undefined if nothing is. */
export function innerProblem(ranks: InnerRanks, importer: string, specifier: string): string | undefined {
  const imported = importedPath(importer, specifier);
  const feature = featureOf(importer);
  const inner = feature === undefined ? undefined : ranks[feature];
  if (feature === undefined || inner === undefined || imported === undefined) return undefined;
  if (featureOf(imported) !== feature || isOwnKit(importer, imported)) return undefined;
  const [from, to] = [innerPlace(inner, importer), innerPlace(inner, imported)];
  if (from === undefined) return `${importer} is in no folder of the ranks of ${feature}`;
  if (to === undefined) return `${imported} is in no folder of the ranks of ${feature}`;
  if (from.folder === to.folder) return undefined;
  if (to.rank > from.rank) return `${feature}/${from.folder} imports ${specifier} from ${to.folder}, which is above it`;
  if (to.rank < from.rank) return undefined;
  return `${feature}/${from.folder} imports ${specifier} from ${to.folder}, which is of the same rank`;
}

/** What sets up the whole feature lies above its folders, and their tests stand on it. */
function isOwnKit(importer: string, imported: string): boolean {
  return isTestSupport(importer) && imported.endsWith(".test-kit.ts") && imported.split("/").length === 3;
}

/**
 * Circles of folders inside features, at every depth. What a folder holds at any depth counts as the folder's; a file
 * that lies directly in the folder around it counts alone, so that a folder's contract may be a file beside subfolders.
 * Tests and their support are left out: they may use whatever their ranks allow.
 */
export function folderCircles(features: readonly string[], imports: readonly ImportAt[]): Violation[] {
  const edges = imports.flatMap(({ file, specifier, line }) => {
    const to = importedPath(file.path, specifier);
    const feature = featureOf(file.path);
    if (isTestSupport(file.path) || to === undefined || feature === undefined || !features.includes(feature)) return [];
    return featureOf(to) === feature ? siblingsOf(file.path, to, line) : [];
  });
  const next = new Map<string, string[]>();
  for (const { from, to } of edges) next.set(from, [...(next.get(from) ?? []), to]);
  const seen = new Set<string>();
  return edges.flatMap(({ from, to, path, line }) => {
    const isFiles = from.endsWith(".ts") && to.endsWith(".ts");
    if (isFiles || seen.has(`${from} ${to}`) || !reaches(next, to, from)) return [];
    seen.add(`${from} ${to}`);
    return [{ path, line, message: `${from} imports ${to}, which leads back to it: a circle of folders` }];
  });
}

type Edge = { from: string; to: string; path: string; line: number };

/** An import as an edge between the two children of the nearest folder that holds both files. */
function siblingsOf(importer: string, imported: string, line: number): Edge[] {
  const [a, b] = [importer.split("/"), imported.split("/")];
  const depth = a.findIndex((part, i) => part !== b[i]);
  if (depth === -1) return [];
  const [from, to] = [a.slice(0, depth + 1).join("/"), b.slice(0, depth + 1).join("/")];
  return [{ from, to, path: importer, line }];
}

function reaches(next: ReadonlyMap<string, readonly string[]>, start: string, goal: string): boolean {
  const [seen, open] = [new Set([start]), [start]];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at === goal) return true;
    for (const node of next.get(at) ?? []) {
      if (seen.has(node)) continue;
      seen.add(node);
      open.push(node);
    }
  }
  return false;
}

function featureOf(path: string): string | undefined {
  const [first, second, third] = path.split("/");
  return first === "src" && third !== undefined ? second : undefined;
}

/** The folder and rank of a file inside its feature; a file directly in the feature's folder is above all of them. */
function innerPlace(ranks: readonly (readonly string[])[], path: string): { folder: string; rank: number } | undefined {
  const [, , folder = "", ...rest] = path.split("/");
  if (rest.length === 0) return { folder: "(the feature's own files)", rank: ranks.length };
  const rank = ranks.findIndex((folders) => folders.includes(folder));
  return rank === -1 ? undefined : { folder, rank };
}

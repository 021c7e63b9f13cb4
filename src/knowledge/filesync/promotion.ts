import type { NodeRecord } from "../memory/model.ts";
import { isFactName } from "./folder.ts";
import { nodeHash } from "./project-memory.ts";
import type { ProjectState } from "./state.ts";
import { titleOf } from "./types.ts";

/** Which memories get a file. */
export type Promotion = {
  isOn: boolean;
  /** Files of a project that are there for such memories, at most. */
  max: number;
  minImportance: number;
  /** How long nobody must have changed anything. */
  quietMs: number;
};

/**
 * The memories that are to get a file, the most important first: none that is stale, and of several that say the same the
 * one that the others are linked to, which is as important as the most important of them.
 */
export function promotable(
  nodes: ReadonlyMap<string, NodeRecord | undefined>,
  { files, curation }: Pick<ProjectState, "files" | "curation">,
  { max, minImportance }: Promotion,
): NodeRecord[] {
  const passedOver = new Set([...curation.review.stale.map(({ id }) => id), ...curation.linked.map(({ src }) => src)]);
  const importance = new Map<string, number>();
  for (const { src, dst } of curation.linked) {
    importance.set(dst, Math.max(importance.get(dst) ?? 0, nodes.get(src)?.importance ?? 0));
  }
  const importanceOf = (node: NodeRecord): number => Math.max(node.importance, importance.get(node.id) ?? 0);
  const pairs = Object.values(files);
  const withFile = new Set(pairs.map(({ nodeId }) => nodeId));
  const room = max - pairs.filter(({ promoted }) => promoted).length;
  const found: NodeRecord[] = [];
  for (const node of nodes.values()) {
    if (node?.kind !== "memory" || nodeHash(node) === "" || withFile.has(node.id)) continue;
    if (importanceOf(node) >= minImportance && !passedOver.has(node.id)) found.push(node);
  }
  found.sort((a, b) => importanceOf(b) - importanceOf(a) || b.updatedAtUs - a.updatedAtUs);
  return found.slice(0, Math.max(0, room));
}

const STEM_CHARS = 60;

/** A name from what the memory is called, or says; another one where that is taken. */
export function newFileName(node: NodeRecord, taken: ReadonlySet<string>): string {
  const words = (node.name ?? titleOf(node.content))
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, "-")
    .slice(0, STEM_CHARS)
    .toWellFormed()
    .replaceAll(/^-+|-+$/g, "");
  const stem = words === "" ? "memory" : words;
  const folded = new Set([...taken].map((name) => name.toLowerCase()));
  const free = [`${stem}.md`, `${stem}-${node.id.slice(0, 8)}.md`].find(
    (name) => isFactName(name) && !folded.has(name.toLowerCase()),
  );
  return free ?? `memory-${node.id.replaceAll(/[^A-Za-z0-9-]/g, "-")}.md`;
}

import type { EdgeRecord, NodeRecord } from "../memory/model.ts";
import type { RealmRights } from "../memory/realms.ts";
import type { MemoryStore } from "../memory/store.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import type { ObservedEvent } from "./ports.ts";

/**
 * What is remembered already and has to do with the events: of the memories that changed last those that share the most
 * words with them. It needs no index, for dreams also run where no questions are answered.
 */
export async function neighboursOf(
  store: Pick<MemoryStore, "newestNodes">,
  databaseId: number,
  { realms, events, focus }: { realms: readonly string[]; events: readonly ObservedEvent[]; focus: string | undefined },
): Promise<NodeRecord[]> {
  const pool = await store.newestNodes(databaseId, { realms, limit: DREAMING_LIMITS.neighbourPool });
  const said = wordsOf([focus ?? "", ...events.map(({ text }) => text)].join("\n"));
  const rated = pool.map((node) => ({ node, score: overlap(wordsOf(`${node.name ?? ""} ${node.content}`), said) }));
  return rated
    .toSorted((a, b) => b.score - a.score)
    .slice(0, DREAMING_LIMITS.neighbours)
    .map(({ node }) => node);
}

/** The edges that hold between those nodes, in those realms. */
export async function edgesBetween(
  store: Pick<MemoryStore, "edgesAt">,
  databaseId: number,
  { nodes, realms, rights }: { nodes: readonly NodeRecord[]; realms: readonly string[]; rights: RealmRights },
): Promise<EdgeRecord[]> {
  const ids = new Set(nodes.map(({ id }) => id));
  const found = await store.edgesAt(databaseId, "src", [...ids], { limit: DREAMING_LIMITS.edges, rights });
  return found
    .flatMap((version) => (version.kind === "edge" && !version.erased ? [version.record] : []))
    .filter(({ realm, dst, validToUs }) => realms.includes(realm) && ids.has(dst) && validToUs === undefined)
    .slice(0, DREAMING_LIMITS.edges);
}

/** Words of more than two letters, or any of a script that is written without blanks. */
function wordsOf(text: string): Set<string> {
  const words =
    text
      .normalize("NFKC")
      .toLowerCase()
      .match(/[\p{L}\p{N}_]+/gu) ?? [];
  return new Set(words.filter((word) => word.length > 2 || /\P{ASCII}/u.test(word)));
}

/** Which part of a memory's words the events have; a long memory is not closer than a short one. */
function overlap(words: ReadonlySet<string>, said: ReadonlySet<string>): number {
  if (words.size === 0) return 0;
  let shared = 0;
  for (const word of words) if (said.has(word)) shared++;
  return shared / Math.sqrt(words.size);
}

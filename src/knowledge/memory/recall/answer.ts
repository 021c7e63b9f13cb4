import { z } from "zod";
import type { EdgeRecord, NodeRecord } from "../model.ts";
import { usToText } from "../times.ts";
import { memoryEdge, memoryNode, wireEdge, wireNode } from "../wire.ts";
import { RECALL_LIMITS } from "./limits.ts";
import type { Ranked, Ranking, ScoreParts } from "./rank.ts";
import { Thinner } from "./thin.ts";
import type { VersionKey, VersionsReader } from "./versions-reader.ts";
import type { View } from "./view.ts";

const scoreParts = z.object({
  lexical: z.number().describe("BM25 of its words."),
  vector: z.number().describe("Cosine of its vector and the question's; 0 where they were not compared."),
  entity: z.number().describe("As an entity that the question names, or a memory beside one."),
  fused: z.number().describe("Of its ranks among all three; 1 for the first of every list."),
  graph: z.number().describe("What came over edges."),
  rerank: z.number().describe("Relevance by the reranking model, from 0 to 1; 0 where it was not asked."),
  importance: z.number().describe("Factor."),
  age: z.number().describe("Factor."),
});

const scored = { score: z.number(), score_parts: scoreParts };

export const recallAnswer = z.object({
  memories: z.array(memoryNode.extend(scored)).describe("The best first."),
  entities: z
    .array(memoryNode.extend(scored))
    .describe("Those that the question names or its memories are linked with."),
  edges: z.array(memoryEdge).describe("Between what is in the answer."),
  as_of: z.string().describe("The time that the answer is about."),
  brief: z
    .string()
    .nullable()
    .optional()
    .describe("Of `agentic`: what the memories say to the question, in at most 200 words; `[1]` is the first memory."),
  brief_memories: z.array(z.string()).optional().describe("Ids of the memories that the brief rests on."),
  brief_error: z.string().optional().describe("Why there is no brief."),
});

export type RecallAnswer = z.infer<typeof recallAnswer>;

/** The answer to a question: what was ranked, with all fields. Near-duplicates of better memories are left out. */
export async function answerOf(
  view: View,
  ranking: Ranking,
  limit: number,
  { reader, databaseId }: From,
): Promise<RecallAnswer> {
  const shown: Shown[] = [];
  const thinner = new Thinner();
  const ranked = ranking.memories.slice(0, limit * RECALL_LIMITS.readForEach + SPARE);
  // Each time twice as many: there may be hundreds that say the same.
  for (let at = 0, count = limit + SPARE; at < ranked.length && shown.length < limit; count *= 2) {
    const some = ranked.slice(at, at + count);
    at += some.length;
    const records = await reader.nodes(
      databaseId,
      some.map((one) => keyOf(view, one)),
    );
    for (const one of some) {
      const record = records.get(idOf(view, one));
      if (record === undefined || shown.length >= limit || !thinner.keeps(record)) continue;
      shown.push({ ranked: one, record });
    }
  }
  const entities = await chosenEntities(view, ranking, shown, { reader, databaseId });
  const edges = await edgesAmong(view, ranking, [...shown, ...entities], { reader, databaseId });
  return {
    memories: shown.map(wireScored),
    entities: entities.map(wireScored),
    edges: edges.map(wireEdge),
    as_of: usToText(view.atUs),
  };
}

type Shown = { ranked: Ranked; record: NodeRecord };
/** Where the fields of what was ranked come from. */
export type From = { reader: VersionsReader; databaseId: number };

/** Read with the wanted ones, in case some say the same. */
const SPARE = 4;

/** Entities that the question names, and those beside the memories that are shown. */
async function chosenEntities(
  view: View,
  { entities, neighbours }: Ranking,
  shown: Shown[],
  from: From,
): Promise<Shown[]> {
  const beside = new Set<number>();
  for (const { ranked } of shown) neighbours.of(ranked.node, (neighbour) => beside.add(neighbour));
  const chosen = entities
    .filter(({ node, parts }) => parts.fused > 0 || beside.has(node))
    .slice(0, RECALL_LIMITS.entities);
  const records = await from.reader.nodes(
    from.databaseId,
    chosen.map((ranked) => keyOf(view, ranked)),
  );
  return chosen.flatMap((ranked) => {
    const record = records.get(idOf(view, ranked));
    return record === undefined ? [] : [{ ranked, record }];
  });
}

async function edgesAmong(view: View, { neighbours }: Ranking, shown: Shown[], from: From): Promise<EdgeRecord[]> {
  const nodes = new Set(shown.map(({ ranked }) => ranked.node));
  const found = new Set<number>();
  for (const node of nodes) {
    neighbours.of(node, (neighbour, _slot, edge) => {
      if (nodes.has(neighbour) && found.size < RECALL_LIMITS.edges) found.add(edge);
    });
  }
  const { versions } = view.index.edges;
  const keys = Array.from(found, (edge) => ({
    id: versions.ids.idOf(versions.owner[edge] ?? 0),
    version: versions.versionOf(edge),
  }));
  const records = await from.reader.edges(from.databaseId, keys);
  return keys.flatMap(({ id }) => records.get(id) ?? []);
}

function wireScored({ ranked: { score, parts }, record }: Shown): RecallAnswer["memories"][number] {
  return { ...wireNode(record), score: rounded(score), score_parts: roundedParts(parts) };
}

function roundedParts(parts: ScoreParts): ScoreParts {
  const entries = Object.entries(parts).map(([name, value]) => [name, rounded(value)]);
  return Object.fromEntries(entries) as ScoreParts;
}

function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

function idOf(view: View, { node }: Ranked): string {
  return view.index.nodes.versions.ids.idOf(node);
}

export function keyOf(view: View, ranked: Ranked): VersionKey {
  return { id: idOf(view, ranked), version: view.index.nodes.versions.versionOf(ranked.slot) };
}

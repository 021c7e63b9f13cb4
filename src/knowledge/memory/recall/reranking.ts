import { beginningOf } from "../../../core/cut-text.ts";
import { embeddedText } from "../embed/vector-text.ts";
import { RERANK_LIMITS } from "../rerank/limits.ts";
import type { Reranker, RerankOutcome } from "../rerank/reranker.ts";
import { keyOf, type From } from "./answer.ts";
import type { Ranked } from "./rank.ts";
import type { View } from "./view.ts";

/**
 * The memories of a ranking in their new order: what a model makes of the question and each text of the best ones adds to
 * their scores, and weighs by importance and age as the rest does. The others stay below them as they are, and so does
 * all when there is no rating in time.
 */
export async function reranked(
  view: View,
  memories: readonly Ranked[],
  query: string,
  { reader, databaseId, reranker }: From & { reranker: Pick<Reranker, "relevances"> },
): Promise<{ memories: readonly Ranked[]; outcome: RerankOutcome | undefined }> {
  const best = memories.slice(0, RERANK_LIMITS.candidates);
  const records = await reader.nodes(
    databaseId,
    best.map((one) => keyOf(view, one)),
  );
  const rated = best.flatMap((one) => {
    const record = records.get(keyOf(view, one).id);
    return record === undefined ? [] : [{ one, text: beginningOf(embeddedText(record), RERANK_LIMITS.textChars) }];
  });
  // One alone has no other place.
  if (rated.length < 2) return { memories, outcome: undefined };
  const { outcome, relevances } = await reranker.relevances(
    beginningOf(query, RERANK_LIMITS.queryChars),
    rated.map(({ text }) => text),
  );
  if (relevances === undefined) return { memories, outcome };
  const byNode = new Map(rated.map(({ one }, i) => [one.node, relevances[i] ?? 0]));
  const { versions } = view.index.nodes;
  const scored = memories.map((one) => withRelevance(one, byNode.get(one.node) ?? 0));
  scored.sort((a, b) => b.score - a.score || versions.compare(a.slot, b.slot));
  return { memories: scored, outcome };
}

function withRelevance(ranked: Ranked, relevance: number): Ranked {
  const { importance, age } = ranked.parts;
  const score = ranked.score + relevance * importance * age;
  return { ...ranked, score, parts: { ...ranked.parts, rerank: relevance } };
}

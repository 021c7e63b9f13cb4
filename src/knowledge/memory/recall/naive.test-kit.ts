import { termsOf } from "../index/terms/terms.ts";
import { termWeight } from "../index/terms/stop-words.ts";
import { validAt } from "../validity.ts";
import type { EdgeVersion, History, NodeVersion } from "./drawn-memory.test-kit.ts";
import type { Asked } from "./question.ts";

/**
 * What recall is to answer, over plain arrays and by definition: nothing of the index is used but the terms of a text.
 */
export function naiveView({ nodes, edges }: History, { question, rights, nowUs }: Asked) {
  const sees = (realm: string) =>
    (question.realms.length === 0 || question.realms.includes(realm)) &&
    (rights.own === undefined || !realm.startsWith("user:") || realm === rights.own);
  const atUs = question.asOfUs ?? question.knownAtUs ?? nowUs;
  const isPast = question.asOfUs !== undefined || question.knownAtUs !== undefined;
  const held = <V extends NodeVersion | EdgeVersion>(versions: readonly V[]): V | undefined => {
    const known = versions.filter(({ record }) => record.updatedAtUs <= (question.knownAtUs ?? Infinity));
    // With what does not hold any more, it does not matter whether it was over.
    const end = question.includeInvalidated ? { validToUs: undefined } : {};
    const found = validAt(
      known.map((version) => Object.assign({}, version.record, end, { version })),
      atUs,
    );
    return found?.version;
  };
  const all = [...nodes.values()].flatMap((versions) => held(versions) ?? []);
  const seen = all.filter(({ record }) => sees(record.realm));
  const links = [...edges.values()].flatMap((versions) => held(versions) ?? []);
  const ids = new Set(seen.map(({ record }) => record.id));
  return {
    nodes: seen,
    edges: links.filter(
      ({ record }) => sees(record.realm) && ids.has(record.src) && ids.has(record.dst) && record.src !== record.dst,
    ),
    sees,
    isPast,
  };
}

/** BM25 of each node in view, by id; of the versions whose words count, those that hold or all of them. */
export function naiveScores(history: History, asked: Asked): Map<string, number> {
  const view = naiveView(history, asked);
  const { includeInvalidated } = asked.question;
  const counted = [...history.nodes.values()].flat().filter(({ record, isCurrent }) => {
    const isLive = isCurrent && record.invalidatedAtUs === undefined;
    return sharesPart(record.realm, view.sees) && (view.isPast || includeInvalidated || isLive);
  });
  const documents = counted.map(({ record }) => bagOf(record));
  const mean = documents.reduce((sum, { length }) => sum + length, 0) / documents.length;
  const terms = new Set<string>();
  termsOf(asked.question.query, (term) => terms.add(term));
  const scores = new Map<string, number>();
  for (const { record } of view.nodes) {
    const { counts, length } = bagOf(record);
    let score = 0;
    for (const term of terms) {
      const n = documents.filter((other) => other.counts.has(term)).length;
      const f = counts.get(term) ?? 0;
      const idf = Math.log(1 + (documents.length - n + 0.5) / (n + 0.5));
      score += (termWeight(term) * idf * f * 2.2) / (f + 1.2 * (0.25 + (0.75 * length) / mean));
    }
    if (score > 0) scores.set(record.id, score);
  }
  return scores;
}

/** All realms that are nobody's own have their words counted together. */
function sharesPart(realm: string, sees: (realm: string) => boolean): boolean {
  return realm.startsWith("user:") ? sees(realm) : ["default", "project:x"].some(sees);
}

function bagOf({ content, name, tags }: NodeVersion["record"]): { counts: Map<string, number>; length: number } {
  const counts = new Map<string, number>();
  let length = 0;
  const count = (times: number) => (term: string) => {
    counts.set(term, (counts.get(term) ?? 0) + times);
    length += times;
  };
  termsOf(content, count(1));
  termsOf(name ?? "", count(2));
  for (const tag of tags) termsOf(tag, count(1));
  return { counts, length };
}

/** What one hop over the edges brings to each node, by id. */
export function naiveHop(seeds: ReadonlyMap<string, number>, edges: readonly EdgeVersion[]): Map<string, number> {
  const gained = new Map<string, number>();
  for (const [id, score] of seeds) {
    const own = edges.filter(({ record }) => record.src === id || record.dst === id);
    const total = own.reduce((sum, { record }) => sum + record.weight, 0);
    if (total === 0) continue;
    for (const { record } of own) {
      const other = record.src === id ? record.dst : record.src;
      gained.set(other, (gained.get(other) ?? 0) + score * 0.5 * Math.sqrt(record.weight / total));
    }
  }
  return gained;
}

/** Personalised PageRank by iterating over all nodes until nothing moves. */
export function naivePageRank(seeds: ReadonlyMap<string, number>, edges: readonly EdgeVersion[]): Map<string, number> {
  const total = [...seeds.values()].reduce((sum, score) => sum + score, 0);
  let walk = new Map([...seeds].map(([id, score]) => [id, score / total]));
  const rank = new Map<string, number>();
  for (let round = 0; round < 200; round++) {
    const next = new Map<string, number>();
    for (const [id, mass] of walk) {
      rank.set(id, (rank.get(id) ?? 0) + 0.25 * mass);
      const own = edges.filter(({ record }) => record.src === id || record.dst === id);
      const weights = own.reduce((sum, { record }) => sum + record.weight, 0);
      for (const { record } of own) {
        const other = record.src === id ? record.dst : record.src;
        if (weights > 0) next.set(other, (next.get(other) ?? 0) + (0.75 * mass * record.weight) / weights);
      }
    }
    walk = next;
  }
  return rank;
}

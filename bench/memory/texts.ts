import { seededRandom } from "../../src/core/random.ts";
import type { EdgeRecord, NodeRecord } from "../../src/knowledge/memory/model.ts";

/** Texts like those that are remembered: few words are common, most are rare; a few sentences each. */

const COMMON = (
  "the of and to in a is that for it on was with as be by are this from at or have an not we which will can has were been " +
  "when if use should because after before error test server deploy user file change version config"
).split(" ");
const SYLLABLES = "ka ro mi ten sol var pre dex lin gor bal tus ner fi ado".split(" ");
const WORDS = 60_000;
const WORDS_PER_TEXT = 45;
const NOW_US = 1_767_225_600_000_000;

export type Corpus = { nodes: NodeRecord[]; edges: EdgeRecord[]; questions: string[] };

/** Nine of ten nodes are memories; edges follow one another, and lead to entities. */
export function corpusOf(plan: { memories: number; edges: number; questions: number; seed: number }): Corpus {
  const random = seededRandom(plan.seed);
  const word = () => wordOf(Math.floor((WORDS + COMMON.length) ** random.next()) - 1);
  const text = () => Array.from({ length: WORDS_PER_TEXT }, word).join(" ");
  const nodes = Array.from({ length: plan.memories }, (_, i) => nodeOf(i, i % 10 === 9, text()));
  const edges = Array.from({ length: plan.edges }, (_, i): EdgeRecord => {
    const src = Math.floor(random.next() * plan.memories);
    const isNext = i % 4 === 0;
    const dst = isNext ? (src + 1) % plan.memories : Math.floor((random.next() ** 2 * plan.memories) / 10) * 10 + 9;
    return edgeOf(i, uuid(src), uuid(Math.min(dst, plan.memories - 1)), isNext ? "follows" : "about");
  });
  const questions = Array.from({ length: plan.questions }, () => {
    const about = (nodes[Math.floor(random.next() * plan.memories)]?.content ?? "").split(" ");
    const asked = Array.from({ length: 7 }, () => about[Math.floor(random.next() * about.length)] ?? "");
    return `what is the ${asked.slice(0, 4).join(" ")} of ${asked.slice(4).join(" ")} that we use`;
  });
  return { nodes, edges, questions };
}

function wordOf(rank: number): string {
  const common = COMMON[rank];
  if (common !== undefined) return common;
  let text = "";
  for (let rest = rank; rest > 0; rest = Math.floor(rest / SYLLABLES.length))
    text += SYLLABLES[rest % SYLLABLES.length];
  return text;
}

export function uuid(number: number): string {
  const hash = Math.imul(number + 1, 0x9e3779b1) >>> 0;
  return `${hash.toString(16).padStart(8, "0")}-0000-8000-8000-${number.toString(16).padStart(12, "0")}`;
}

export function nodeOf(number: number, isEntity: boolean, content: string): NodeRecord {
  return {
    ...lifeCycle(uuid(number)),
    realm: "default",
    kind: isEntity ? "entity" : "memory",
    memoryType: isEntity ? undefined : "fact",
    entityKind: isEntity ? "thing" : undefined,
    name: isEntity ? `entity ${number}` : undefined,
    content,
    tags: [],
    importance: 0.5,
    topicKey: undefined,
    props: {},
    source: undefined,
    trust: "stated",
  };
}

export function edgeOf(number: number, src: string, dst: string, rel: string): EdgeRecord {
  return { ...lifeCycle(uuid(number)), realm: "default", src, dst, namespace: "memory", rel, weight: 1, props: {} };
}

function lifeCycle(id: string) {
  return {
    id,
    version: 1,
    validFromUs: NOW_US,
    validToUs: undefined,
    invalidatedAtUs: undefined,
    invalidatedBy: undefined,
    invalidationReason: undefined,
    createdAtUs: NOW_US,
    updatedAtUs: NOW_US,
    originUpdatedAtUs: NOW_US,
    contentHash: id.replaceAll("-", ""),
  };
}

import { hash } from "node:crypto";
import { assert, boolean, constantFrom, integer, option, pre, property, record, sample } from "fast-check";
import { expect, test } from "vitest";
import { vectorKeyOf } from "../embed/vector-text.ts";
import { MemoryIndex } from "../index/memory-index.ts";
import {
  history,
  historyAndCut,
  nodeId,
  pageOf,
  START_US,
  type EdgeVersion,
  type History,
  type NodeVersion,
} from "./drawn-memory.test-kit.ts";
import { naiveHop, naivePageRank, naiveScores, naiveView } from "./naive.test-kit.ts";
import { RECALL_LIMITS } from "./limits.ts";
import { Neighbours } from "./neighbours.ts";
import type { Asked, Question } from "./question.ts";
import { rank, type Ranked } from "./rank.ts";
import { pageRank, spread } from "./spread.ts";
import { View } from "./view.ts";

/** The index and recall against what they are by definition, over plain arrays. fast-check prints the seed of a failure. */
const RUNS = { numRuns: 80 };
const OPTIONS = { ppr: false, classDecay: false };
const ANN = { own: "user:ann" };

const moment = option(integer({ min: -50, max: 80 }), { nil: undefined });
const asked = record({
  query: constantFrom("alpha", "the relation of beta", "tokyo 東京", "fooBar port-80 cafe", "of the"),
  realms: constantFrom([], ["default"], ["user:ann", "project:x"]),
  asOf: moment,
  knownAt: moment,
  includeInvalidated: boolean(),
  rights: constantFrom({ own: undefined }, ANN),
}).map((drawn) => (nowUs: number): Asked => {
  const question = questionOf(drawn.query, {
    realms: drawn.realms,
    asOfUs: drawn.asOf === undefined ? undefined : START_US + drawn.asOf * 3_600_000_000,
    knownAtUs: drawn.knownAt === undefined ? undefined : START_US + drawn.knownAt * 3_600_000_000,
    includeInvalidated: drawn.includeInvalidated,
  });
  return { question, rights: drawn.rights, nowUs };
});

test("words score as BM25 is defined, for every caller, realm and time", () => {
  assert(
    property(history, asked, (told, ask) => {
      const at = ask(told.endUs);
      const pending = [...told.nodes.values(), ...told.edges.values()].flat();
      // A version that begins later has everything asked as of now: former versions count too then.
      const isAhead = pending.some(({ record, isCurrent }) => isCurrent && record.validFromUs > at.nowUs);
      pre(!isAhead || at.question.asOfUs !== undefined || at.question.knownAtUs !== undefined);
      const found = scoresOf(built(told), at, ({ parts }) => parts.lexical);
      expectClose(found, naiveScores(told, at));
    }),
    RUNS,
  );
});

test("an index that followed the commits answers as one that is built at once", () => {
  assert(
    property(historyAndCut, asked, ({ whole, moments }, ask) => {
      const followed = new MemoryIndex();
      for (const then of moments) {
        followed.apply(pageOf(then, followed.seq, then.seq));
        // A page that comes again changes nothing.
        followed.apply(pageOf(then, Math.max(0, then.seq - 3), then.seq));
      }
      const before = moments.at(-1)?.seq ?? 0;
      followed.apply(pageOf(whole, before, whole.seq));
      const at = ask(whole.endUs);
      expect(ranked(followed, at)).toEqual(ranked(built(whole), at));
    }),
    RUNS,
  );
});

test("what a caller may not see changes nothing that they see", () => {
  assert(
    property(history, asked, boolean(), (told, ask, ppr) => {
      const at = { ...ask(told.endUs), rights: ANN };
      expect(ranked(built(told), at, ppr)).toEqual(ranked(built(without(told, "user:bob")), at, ppr));
    }),
    RUNS,
  );
});

test("with vectors, too; and what is closest is so by the vectors of the versions in view", () => {
  const question = drawnVector("a question");
  assert(
    property(history, asked, (told, ask) => {
      const at = { ...ask(told.endUs), rights: ANN, vector: question };
      const index = builtWithVectors(told);
      expect(ranked(index, at)).toEqual(ranked(builtWithVectors(without(told, "user:bob")), at));
      const cosines = naiveView(told, at).nodes.map(({ record }): [string, number] => {
        const vector = drawnVector(vectorKeyOf(record));
        return [record.id, vector.reduce((sum, value, i) => sum + value * (question[i] ?? 0), 0)];
      });
      const least = Math.max(...cosines.map(([, cosine]) => cosine)) / 2;
      const wanted = new Map(cosines.filter(([, cosine]) => cosine >= least));
      expectClose(
        scoresOf(index, at, ({ parts }) => parts.vector),
        wanted,
      );
    }),
    RUNS,
  );
});

test("one hop and PageRank are those of the graph in view", () => {
  assert(
    property(history, asked, (told, ask) => {
      const at = ask(told.endUs);
      const index = built(told);
      const naive = naiveView(told, at);
      const seeds = new Map(naive.nodes.slice(0, 3).map(({ record }, i) => [record.id, 1 / (i + 1)]));
      const { ids } = index.nodes.versions;
      const numbered = new Map(Array.from(seeds, ([id, score]) => [ids.numberOf(id), score]));
      const byId = (scores: ReadonlyMap<number, number>) =>
        new Map(Array.from(scores, ([node, score]) => [ids.idOf(node), score]));
      const neighbours = () => new Neighbours(new View(index, at));
      expectClose(byId(spread(numbered, 1, neighbours(), (a, b) => a - b)), naiveHop(seeds, naive.edges));
      if (seeds.size === 0) return;
      const exact = naivePageRank(seeds, naive.edges);
      const pushed = byId(pageRank(numbered, neighbours()));
      // Local push never gives more, and what it leaves is less than its threshold for each node there is.
      for (const [id, score] of exact) expect(Math.abs(score - (pushed.get(id) ?? 0))).toBeLessThan(0.01);
    }),
    RUNS,
  );
});

test("importance, type and tags choose among candidates before the best are taken", () => {
  const index = new MemoryIndex();
  const told = many(600);
  index.apply(pageOf(told, 0, told.seq));
  const question = questionOf("alpha beta", { memoryType: "decision", tags: ["rare"], importanceMin: 0.9 });
  const { memories } = rank(
    new View(index, { question, rights: ANN, nowUs: told.endUs }),
    { query: question.query, expandHops: 0 },
    OPTIONS,
  );
  expect(memories.map(({ node }) => index.nodes.versions.ids.idOf(node))).toEqual([nodeId(599)]);
});

test("however many edges others hang on a node, those that a caller sees are followed", () => {
  const told = many(3);
  const [hub, near, far] = [nodeId(0), nodeId(1), nodeId(2)];
  const edge = (dst: string, rel: string, realm: string): EdgeVersion => {
    const { record } = told.nodes.get(hub)?.[0] ?? fail();
    const id = `${dst} ${rel}`;
    const ends = { src: hub, dst, namespace: "memory", rel, weight: realm === "default" ? 1 : 1_000, props: {} };
    return { record: { ...record, ...ends, id, realm }, seq: 3, isCurrent: true };
  };
  const hidden = Array.from({ length: 2 * RECALL_LIMITS.edgesLooked }, (_, i) => edge(far, `r${i}`, "user:bob"));
  const edges = [...hidden, edge(near, "about", "default")];
  const index = built({ ...told, edges: new Map(edges.map((each) => [each.record.id, [each]])) });
  const neighboursOf = (rights: Asked["rights"]) => {
    const view = new View(index, { question: questionOf("alpha"), rights, nowUs: told.endUs });
    const { ids } = index.nodes.versions;
    const found: string[] = [];
    new Neighbours(view).of(ids.numberOf(hub), (node) => found.push(ids.idOf(node)));
    return found;
  };
  expect(neighboursOf(ANN)).toEqual([near]);
  expect(neighboursOf({ own: "user:bob" })).toContain(far);
  expect(neighboursOf({ own: "user:bob" })).toHaveLength(RECALL_LIMITS.edgesPerNode);
});

function built(told: History): MemoryIndex {
  const index = new MemoryIndex();
  index.apply(pageOf(told, 0, told.seq));
  return index;
}

/** Every version has one, also former ones: each text that came was embedded once. */
function builtWithVectors(told: History): MemoryIndex {
  const index = new MemoryIndex({ withVectors: true });
  index.apply(pageOf(told, 0, told.seq));
  const records = [...told.nodes.values()].flat().map(({ record }) => record);
  index.vectors?.apply(
    records.map((record, i) => {
      const key = vectorKeyOf(record);
      return { key, nodeId: record.id, seq: i + 1, vector: drawnVector(key) };
    }),
  );
  return index;
}

/** A vector of length 1 that follows from a text. */
function drawnVector(text: string): Float32Array {
  const values = Array.from(hash("sha256", text, "buffer").subarray(0, 8), (byte) => byte - 127.5);
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
}

function ranked(index: MemoryIndex, at: Asked, ppr = false): unknown {
  const { memories, entities } = rank(
    new View(index, at),
    { query: at.question.query, vector: at.vector, expandHops: 1 },
    { ppr, classDecay: true },
  );
  const { versions } = index.nodes;
  return [...memories, ...entities].map(({ node, slot, score }) => [
    versions.ids.idOf(node),
    versions.versionOf(slot),
    Math.round(score * 1e9),
  ]);
}

function scoresOf(index: MemoryIndex, at: Asked, scoreOf: (one: Ranked) => number): Map<string, number> {
  const ranking = rank(new View(index, at), { query: at.question.query, vector: at.vector, expandHops: 0 }, OPTIONS);
  const all = [...ranking.memories, ...ranking.entities].filter((one) => scoreOf(one) > 0);
  return new Map(all.map((one) => [index.nodes.versions.ids.idOf(one.node), scoreOf(one)]));
}

function expectClose(found: ReadonlyMap<string, number>, wanted: ReadonlyMap<string, number>): void {
  const positive = new Map([...wanted].filter(([, score]) => score > 0));
  const gained = new Map([...found].filter(([, score]) => score > 0));
  expect([...gained.keys()].toSorted()).toEqual([...positive.keys()].toSorted());
  for (const [id, score] of positive) expect(gained.get(id)).toBeCloseTo(score, 9);
}

function without({ nodes, edges, ...rest }: History, realm: string): History {
  const kept = [...nodes].filter(([, versions]) => versions.every(({ record }) => record.realm !== realm));
  const links = [...edges].filter(([, versions]) => versions.every(({ record }) => record.realm !== realm));
  return { ...rest, nodes: new Map(kept), edges: new Map(links) };
}

function questionOf(query: string, more: Partial<Question> = {}): Question {
  return {
    query,
    realms: [],
    memoryType: undefined,
    tags: [],
    importanceMin: undefined,
    asOfUs: undefined,
    knownAtUs: undefined,
    includeInvalidated: false,
    limit: undefined,
    expandHops: undefined,
    ...more,
  };
}

/** Memories of the same words, of which the last one is the only one that fits. */
function many(count: number): History {
  const [first] = sample(history, { numRuns: 1, seed: 7 });
  const some = first?.nodes.values().next().value?.[0] ?? fail();
  const nodes = new Map<string, NodeVersion[]>(
    Array.from({ length: count }, (_, i) => {
      const isRare = i === count - 1;
      const record = {
        ...some.record,
        id: nodeId(i),
        realm: "default",
        kind: "memory" as const,
        content: isRare ? "alpha and many other words that make it longer" : "alpha beta",
        tags: isRare ? ["rare"] : [],
        memoryType: "decision",
        importance: isRare ? 0.9 : 0.5,
        validFromUs: 0,
        validToUs: undefined,
        invalidatedAtUs: undefined,
        version: i + 1,
      };
      return [record.id, [{ record, seq: i + 1, isCurrent: true }]] satisfies [string, NodeVersion[]];
    }),
  );
  return { nodes, edges: new Map(), erased: [], seq: count, endUs: START_US };
}

function fail(): never {
  throw new Error("the drawn history has no node");
}

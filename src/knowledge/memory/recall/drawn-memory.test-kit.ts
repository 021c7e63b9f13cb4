import {
  array,
  boolean,
  constant,
  constantFrom,
  integer,
  oneof,
  option,
  record,
  subarray,
  type Arbitrary,
} from "fast-check";
import type { IndexChange, IndexPage } from "../index/memory-index.ts";
import type { EdgeRecord, NodeRecord } from "../model.ts";

/** Histories of a memory, drawn at random: what a feed would tell of it, commit by commit. */

const WORDS = [
  "alpha",
  "beta",
  "gamma",
  "delta",
  "relation",
  "relations",
  "the",
  "of",
  "fooBar",
  "東京都",
  "café",
  "port-80",
];
const REALMS = ["default", "project:x", "user:ann", "user:bob"];
const NAMES = ["Acme", "Blue Whale", "alpha"];
export const START_US = 1_700_000_000_000_000;
const HOUR_US = 3_600_000_000;

const text = array(constantFrom(...WORDS), { minLength: 1, maxLength: 12 }).map((words) => words.join(" "));

const nodeSave = record({
  what: constant("node" as const),
  id: integer({ min: 0, max: 11 }),
  content: text,
  importance: constantFrom(0, 0.25, 0.5, 1),
  tags: subarray(["red", "blue"]),
  memoryType: constantFrom("fact", "decision", undefined),
  validFrom: integer({ min: -40, max: 10 }),
  validTo: option(integer({ min: 11, max: 60 }), { nil: undefined }),
  isInvalidated: boolean(),
  /** An import that loses against what is there. */
  loses: boolean(),
});
const edgeSave = record({
  what: constant("edge" as const),
  src: integer({ min: 0, max: 11 }),
  dst: integer({ min: 0, max: 11 }),
  rel: constantFrom("follows", "about"),
  realm: constantFrom(...REALMS),
  weight: constantFrom(0, 0.5, 1, 3),
  isInvalidated: boolean(),
});
const erase = record({ what: constant("erase" as const), id: integer({ min: 0, max: 11 }) });

export const history = array(
  oneof({ weight: 6, arbitrary: nodeSave }, { weight: 5, arbitrary: edgeSave }, { weight: 1, arbitrary: erase }),
  {
    minLength: 1,
    maxLength: 60,
  },
).map(played);

export type History = ReturnType<typeof played>;
type Step = { what: "node" } & Record<string, unknown>;

/** What is stored after the history, with the changes in the order of their commits. */
function played(steps: readonly unknown[]) {
  const nodes = new Map<string, NodeVersion[]>();
  const edges = new Map<string, EdgeVersion[]>();
  const erased: { kind: "node" | "edge"; id: string; version: number; seq: number }[] = [];
  let seq = 0;
  for (const step of steps as Step[]) {
    seq++;
    const stampUs = START_US + seq * HOUR_US;
    if (step.what === "node") saveNode(nodes, step as never, seq, stampUs);
    else if ((step.what as string) === "edge") saveEdge(edges, step as never, seq, stampUs);
    else eraseNode(nodes, edges, erased, step as never, seq);
  }
  return { nodes, edges, erased, seq, endUs: START_US + (seq + 1) * HOUR_US };
}

type Stored<R> = { record: R; seq: number; isCurrent: boolean };
export type NodeVersion = Stored<NodeRecord>;
export type EdgeVersion = Stored<EdgeRecord>;

type DrawnNode = typeof nodeSave extends Arbitrary<infer T> ? T : never;
type DrawnEdge = typeof edgeSave extends Arbitrary<infer T> ? T : never;

function saveNode(nodes: Map<string, NodeVersion[]>, step: DrawnNode, seq: number, stampUs: number): void {
  const id = nodeId(step.id);
  const before = nodes.get(id) ?? [];
  const current = before.find(({ isCurrent }) => isCurrent);
  const loses = step.loses && current !== undefined;
  const isEntity = step.id >= 9;
  const record: NodeRecord = {
    ...lifeCycle(id, seq, loses ? (current?.record.originUpdatedAtUs ?? 0) - 1 : stampUs, stampUs),
    realm: REALMS[step.id % REALMS.length] ?? "default",
    kind: isEntity ? "entity" : "memory",
    memoryType: isEntity ? undefined : step.memoryType,
    entityKind: isEntity ? "thing" : undefined,
    name: isEntity ? NAMES[step.id - 9] : undefined,
    content: step.content,
    tags: step.tags,
    importance: step.importance,
    topicKey: undefined,
    props: {},
    source: undefined,
    trust: "stated",
    validFromUs: stampUs + step.validFrom * HOUR_US,
    validToUs: step.validTo === undefined ? undefined : stampUs + step.validTo * HOUR_US,
    ...(step.isInvalidated && { invalidatedAtUs: stampUs, validToUs: stampUs }),
  };
  if (!loses && current !== undefined) current.isCurrent = false;
  nodes.set(id, [...before, { record, seq, isCurrent: !loses }]);
}

function saveEdge(edges: Map<string, EdgeVersion[]>, step: DrawnEdge, seq: number, stampUs: number): void {
  const id = `edge-${step.src}-${step.dst}-${step.rel}-${step.realm}`;
  const before = edges.get(id) ?? [];
  for (const version of before) version.isCurrent = false;
  const record: EdgeRecord = {
    ...lifeCycle(id, seq, stampUs, stampUs),
    realm: step.realm,
    src: nodeId(step.src),
    dst: nodeId(step.dst),
    namespace: "memory",
    rel: step.rel,
    weight: step.weight,
    props: {},
    ...(step.isInvalidated && { invalidatedAtUs: stampUs, validToUs: stampUs }),
  };
  edges.set(id, [...before, { record, seq, isCurrent: true }]);
}

function eraseNode(
  nodes: Map<string, NodeVersion[]>,
  edges: Map<string, EdgeVersion[]>,
  erased: { kind: "node" | "edge"; id: string; version: number; seq: number }[],
  { id: number }: { id: number },
  seq: number,
): void {
  const id = nodeId(number);
  if (nodes.delete(id)) erased.push({ kind: "node", id, version: seq, seq });
  for (const [edge, versions] of edges) {
    if (versions.every(({ record }) => record.src !== id && record.dst !== id)) continue;
    edges.delete(edge);
    erased.push({ kind: "edge", id: edge, version: seq, seq });
  }
}

/** Versions are numbered by commit here: what matters is that they grow. */
function lifeCycle(id: string, seq: number, originUpdatedAtUs: number, stampUs: number) {
  return {
    id,
    version: seq,
    validFromUs: stampUs,
    validToUs: undefined,
    invalidatedAtUs: undefined,
    invalidatedBy: undefined,
    invalidationReason: undefined,
    createdAtUs: stampUs,
    updatedAtUs: stampUs,
    originUpdatedAtUs,
    contentHash: (seq * 7919).toString(16).padStart(32, "0"),
  };
}

/** Half of the ids look like those that the program makes. */
export function nodeId(number: number): string {
  return number % 2 === 0 ? `node-${number}` : `00000000-0000-8000-8000-${String(number).padStart(12, "0")}`;
}

/** What a feed says after a commit, of a history that has come as far as it has: the past has become former. */
export function pageOf({ nodes, edges, erased }: History, afterSeq: number, throughSeq: number): IndexPage {
  const within = ({ seq }: { seq: number }) => seq > afterSeq && seq <= throughSeq;
  const changesOf = <R extends { id: string }>(kind: "node" | "edge", all: Map<string, Stored<R>[]>) => {
    const changes = [...all.values()].flat().filter(within);
    const told = changes.map(({ record, seq, isCurrent }): [number, IndexChange<R>] => [
      seq,
      { state: isCurrent ? "current" : "former", record },
    ]);
    const gone = erased.filter((tombstone) => tombstone.kind === kind && within(tombstone));
    const tombstones = gone.map(({ seq, ...record }): [number, IndexChange<R>] => [seq, { state: "erased", record }]);
    return [...told, ...tombstones].toSorted(([a], [b]) => a - b).map(([, change]) => change);
  };
  return { seq: throughSeq, nodes: changesOf("node", nodes), edges: changesOf("edge", edges) };
}

/** The history as it was after `steps` of its commits. */
export const historyAndCut = array(
  oneof({ weight: 6, arbitrary: nodeSave }, { weight: 5, arbitrary: edgeSave }, { weight: 1, arbitrary: erase }),
  {
    minLength: 2,
    maxLength: 60,
  },
)
  .chain((steps) =>
    record({
      cuts: array(integer({ min: 1, max: steps.length }), { maxLength: 8 }),
      steps: constant(steps),
    }),
  )
  .map(({ cuts, steps }) => ({
    whole: played(steps),
    /** What was there at each of some moments, in order. */
    moments: [...new Set(cuts)].toSorted((a, b) => a - b).map((cut) => played(steps.slice(0, cut))),
  }));

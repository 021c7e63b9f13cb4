/**
 * Graphs as routes and tools show them, whatever they are made of: the catalog (`schema-graph.ts`), a memory
 * (`memory-graph.ts`), two tables (`sql-graph.ts`).
 */
export type GraphNode = {
  id: string;
  labels: string[];
  realm: string | null;
  props: Readonly<Record<string, unknown>>;
};

export type GraphEdge = {
  /** Ids of nodes. */
  src: string;
  dst: string;
  type: string;
  realm: string | null;
  props: Readonly<Record<string, unknown>>;
};

/** A part of a graph: every end of an edge is among its nodes. */
export type GraphPart = {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
  /** There is more than fits. */
  truncated: boolean;
};

export const DIRECTIONS = ["forward", "backward", "both"] as const;
/** Along edges from `src` to `dst`, against them, or either. */
export type Direction = (typeof DIRECTIONS)[number];

export type Counts = { nodes: number; edges: number };

/** A word of a graph's vocabulary, and how often it is used. */
export type CountedWord = { name: string; count: number };
export type Vocabulary = { labels: readonly CountedWord[]; edgeTypes: readonly CountedWord[] };

export type EdgeQuestion = {
  ids: readonly string[];
  direction: Direction;
  /** Only edges both of whose ends are among the ids. */
  onlyInternal: boolean;
  limit: number;
};

export type SearchQuestion = {
  /** Words that must all occur, in whatever order and letter case; all nodes when there are none. */
  words: readonly string[];
  /** Nodes with one of these; all when there are none. */
  labels: readonly string[];
  realm: string | undefined;
  limit: number;
  offset: number;
};

/** `total`: how many nodes fit, with those before and after the page. */
export type Found = { ids: readonly string[]; total: number };

/** What answers questions about one graph, within the rights of one caller. */
export interface GraphSource {
  /** The ids of the nodes with the most edges first; one more than `limit` where there are more. */
  mostLinked(question: { realm: string | undefined; limit: number }): Promise<readonly string[]>;
  counts(question: { realm: string | undefined }): Promise<Counts>;
  /** The most used words first. */
  vocabulary(): Promise<Vocabulary>;
  search(question: SearchQuestion): Promise<Found>;
  /** Those that exist, in any order; `brief` ones have long texts cut off. */
  nodes(ids: readonly string[], detail: "brief" | "whole"): Promise<readonly GraphNode[]>;
  /** One edge more than `limit` where there are more. */
  edges(question: EdgeQuestion): Promise<readonly GraphEdge[]>;
}

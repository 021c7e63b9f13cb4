/** What one request about a graph may ask for, and what is answered. */
export const GRAPH_LIMITS = {
  nodes: 5_000,
  edges: 20_000,
  depth: 5,
  defaultDepth: 2,
  overviewNodes: 800,
  /** Edges of one expansion, unless the request says. */
  neighbours: 200,
  found: 50,
  foundMost: 500,
  offset: 100_000,
  /** Nodes that one request names. */
  askedIds: 500,
  idChars: 1_024,
  realmChars: 256,
  labels: 50,
  textChars: 512,
  words: 16,
  descriptionChars: 1_000,
  /** Words of each vocabulary. */
  vocabulary: 500,
  /** Of a text in a part of a graph; a single node has it whole. */
  briefChars: 300,
  /** Graphs of one database. */
  graphs: 1_000,
} as const;

/**
 * What a memory is made of: nodes (memories and entities) and edges between them, as versioned records of a database.
 *
 * A record is never changed: each change adds a version, and one version of an id is current. Two times are kept apart.
 * Validity (`validFromUs` ≤ t < `validToUs`) says when something held in the world; the commit that brought a version
 * says when it was recorded here. `validity.ts` answers what held at a time.
 *
 * Replicas exchange current versions. Of two versions of an id the one with the later `originUpdatedAtUs` is current on
 * every replica, of equal ones the one with the greater content hash, so the order in which they arrive does not matter.
 *
 * In the process, times are integers of µs since 1970; on the wire (`wire.ts`) they are RFC 3339, names are in
 * snake_case, and what is absent is null.
 */
export const NODE_KINDS = ["memory", "entity"] as const;
export type NodeKind = (typeof NODE_KINDS)[number];

/** Where a statement comes from: somebody said it, it was concluded from others, or it came from outside. */
export const TRUSTS = ["stated", "derived", "external"] as const;
export type Trust = (typeof TRUSTS)[number];

/** What commands and tools save; an import may bring other words. */
export const MEMORY_TYPES = ["fact", "decision", "preference", "learning", "procedure"] as const;

export const DEFAULT_REALM = "default";
export const DEFAULT_NAMESPACE = "memory";
export const DEFAULT_REL = "related_to";
export const DEFAULT_IMPORTANCE = 0.5;
export const DEFAULT_WEIGHT = 1;

export type Props = Readonly<Record<string, unknown>>;

/** What nodes and edges have in common. */
export type LifeCycle = {
  /** Unique among the nodes, or the edges, of a database. */
  id: string;
  realm: string;
  /** Counts the versions of the id here; replicas count for themselves. */
  version: number;
  validFromUs: number;
  validToUs: number | undefined;
  invalidatedAtUs: number | undefined;
  invalidatedBy: string | undefined;
  invalidationReason: string | undefined;
  /** When the first version was made, where it was made. */
  createdAtUs: number;
  /** The stamp of the commit that brought this version here. */
  updatedAtUs: number;
  /** When this version was made, where it was made. */
  originUpdatedAtUs: number;
  /** Of everything that replicas exchange, as hexadecimal digits. */
  contentHash: string;
};

export type NodeRecord = LifeCycle & {
  kind: NodeKind;
  /** Of memories: `fact`, `decision`, `preference`, `learning`, `procedure`, or a word of the caller's. */
  memoryType: string | undefined;
  /** Of entities: `person`, `service`, … */
  entityKind: string | undefined;
  /** Of entities always, of memories where they have a title. */
  name: string | undefined;
  /** Empty for entities about which nothing is said. */
  content: string;
  tags: readonly string[];
  /** 0 to 1. */
  importance: number;
  /** One current memory for each in a realm: saving another replaces it. */
  topicKey: string | undefined;
  props: Props;
  source: string | undefined;
  trust: Trust;
};

export type EdgeRecord = LifeCycle & {
  /** The id of a node of the memory. */
  src: string;
  /** The id of a node of `namespace`. */
  dst: string;
  /** `memory`, or the graph that `dst` belongs to. */
  namespace: string;
  rel: string;
  weight: number;
  props: Props;
};

/** What is left of a record that was erased: no word of what it said. */
export type Tombstone = Pick<
  LifeCycle,
  "id" | "realm" | "version" | "updatedAtUs" | "originUpdatedAtUs" | "contentHash"
> & { erasedAtUs: number };

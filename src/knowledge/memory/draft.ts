import { hashOfEdge, hashOfNode, hashOfTombstone, type EdgeContent, type NodeContent } from "./content-hash.ts";
import { DEFAULT_NAMESPACE, type EdgeRecord, type NodeRecord, type Tombstone } from "./model.ts";
import { confirmableKey, type RecordKind, type StoredVersion, type Version } from "./rows.ts";
import { prevails } from "./validity.ts";

export type RecordKey = { kind: RecordKind; id: string };

/** What the catalog has of one id. */
export type Known = {
  current: StoredVersion | undefined;
  /** The highest version that was given out. */
  latest: number;
  /** When it was last erased: what was made before that is not stored any more. */
  erasedOriginUs: number | undefined;
};

/** What a commit changes. */
export type Changes = {
  /** Ids of which every version goes. */
  wiped: readonly RecordKey[];
  /** Ids whose current version, as it was before, is superseded. */
  ended: readonly RecordKey[];
  added: readonly StoredVersion[];
  counts: readonly CountChange[];
};

/** By how much the current versions of a realm grow. */
export type CountChange = { realm: string; kind: CountedKind; current: number; invalidated: number };
export type CountedKind = "memory" | "entity" | "edge";

type Entry = Known & {
  readonly before: StoredVersion | undefined;
  /** Versions of this commit. */
  added: StoredVersion[];
  isWiped: boolean;
};

const NOTHING: Known = { current: undefined, latest: 0, erasedOriginUs: undefined };

/**
 * The next commit of a database, as it is planned: the records that it is about, as they are, and what becomes of them.
 * Plans see what those before them in the same commit did.
 */
export class Draft {
  readonly seq: number;
  /** The commit's stamp. */
  readonly stampUs: number;
  /** The time of the database. */
  readonly nowUs: number;
  readonly #entries = new Map<string, Entry>();
  readonly #confirmable = new Map<string, string>();

  constructor(head: { seq: number; stampUs: number; nowUs: number }) {
    this.seq = head.seq + 1;
    this.nowUs = head.nowUs;
    this.stampUs = Math.max(head.nowUs, head.stampUs + 1);
  }

  /** Notes what the catalog has. */
  load(known: readonly Known[]): void {
    for (const each of known) {
      const { current } = each;
      if (current === undefined) continue;
      this.#entries.set(keyOf(current.kind, current.record.id), entryOf(each));
      this.#noteConfirmable(current);
    }
  }

  /** What there is of an id, tombstones too. */
  version(kind: RecordKind, id: string): Version | undefined {
    return this.#entries.get(keyOf(kind, id))?.current;
  }

  node(id: string): NodeRecord | undefined {
    const version = this.version("node", id);
    return version?.kind === "node" && !version.erased ? version.record : undefined;
  }

  edge(id: string): EdgeRecord | undefined {
    const version = this.version("edge", id);
    return version?.kind === "edge" && !version.erased ? version.record : undefined;
  }

  /** The edges of a node, of those that were loaded or saved. */
  edgesOf(nodeId: string): EdgeRecord[] {
    return [...this.#entries.values()].flatMap(({ current }) => {
      if (current?.kind !== "edge" || current.erased) return [];
      const { src, dst, namespace } = current.record;
      return src === nodeId || (dst === nodeId && namespace === DEFAULT_NAMESPACE) ? [current.record] : [];
    });
  }

  /** When an id was last erased. */
  erasedOriginUs(kind: RecordKind, id: string): number | undefined {
    return this.#entries.get(keyOf(kind, id))?.erasedOriginUs;
  }

  /** The memory that an equal one confirms. */
  confirmable(duplicateKey: string): NodeRecord | undefined {
    const node = this.node(this.#confirmable.get(duplicateKey) ?? "");
    return node !== undefined && confirmableKey(node) === duplicateKey ? node : undefined;
  }

  /** Makes it the current version of its id. It is later than the one before, unless `originUpdatedAtUs` is given. */
  putNode(content: NodeContent, originUpdatedAtUs = this.#laterOrigin("node", content.id)): NodeRecord {
    const entry = this.#entry("node", content.id);
    const record = { ...content, contentHash: hashOfNode(content), ...this.#local(entry, originUpdatedAtUs) };
    this.#add(entry, { kind: "node", erased: false, record });
    return record;
  }

  putEdge(content: EdgeContent, originUpdatedAtUs = this.#laterOrigin("edge", content.id)): EdgeRecord {
    const entry = this.#entry("edge", content.id);
    const record = { ...content, contentHash: hashOfEdge(content), ...this.#local(entry, originUpdatedAtUs) };
    this.#add(entry, { kind: "edge", erased: false, record });
    return record;
  }

  /** Every version of the id goes, and a tombstone stays. */
  erase(
    { kind, id, realm }: RecordKey & { realm: string },
    originUpdatedAtUs = this.#laterOrigin(kind, id),
    erasedAtUs = this.stampUs,
  ): Tombstone {
    const entry = this.#entry(kind, id);
    const contentHash = hashOfTombstone({ id, realm, erasedAtUs });
    const record = { id, realm, erasedAtUs, contentHash, ...this.#local(entry, originUpdatedAtUs) };
    entry.added = [];
    entry.isWiped = true;
    entry.current = undefined;
    entry.erasedOriginUs = Math.max(originUpdatedAtUs, entry.erasedOriginUs ?? -Infinity);
    this.#add(entry, { kind, erased: true, record });
    return record;
  }

  /** A version that lost against the current one: it was never current here, and is a former one at once. */
  addFormer(
    version: { kind: "node"; content: NodeContent } | { kind: "edge"; content: EdgeContent },
    originUs: number,
  ) {
    const entry = this.#entry(version.kind, version.content.id);
    const ended = { seq: this.seq, endedSeq: this.seq };
    const local = this.#local(entry, originUs);
    entry.latest++;
    if (version.kind === "node") {
      const record = { ...version.content, contentHash: hashOfNode(version.content), ...local };
      entry.added.push({ kind: "node", erased: false, record, ...ended });
    } else {
      const record = { ...version.content, contentHash: hashOfEdge(version.content), ...local };
      entry.added.push({ kind: "edge", erased: false, record, ...ended });
    }
  }

  get changes(): Changes | undefined {
    const touched = [...this.#entries].filter(([, { added }]) => added.length > 0);
    if (touched.length === 0) return undefined;
    const keys = (test: (entry: Entry) => boolean) =>
      touched.filter(([, entry]) => test(entry)).map(([key]) => toKey(key));
    return {
      wiped: keys(({ isWiped, before }) => isWiped && before !== undefined),
      ended: keys(({ isWiped, before, current }) => !isWiped && before !== undefined && current !== before),
      added: touched.flatMap(([, { added }]) => added),
      counts: countChanges(touched.map(([, entry]) => entry)),
    };
  }

  #entry(kind: RecordKind, id: string): Entry {
    const key = keyOf(kind, id);
    const entry = this.#entries.get(key) ?? entryOf(NOTHING);
    this.#entries.set(key, entry);
    return entry;
  }

  #local({ latest }: Entry, originUpdatedAtUs: number) {
    return { version: latest + 1, updatedAtUs: this.stampUs, originUpdatedAtUs };
  }

  #add(entry: Entry, version: Version): void {
    // One from before this commit is ended by a statement.
    const previous = entry.added.find((each) => each === entry.current);
    if (previous !== undefined) previous.endedSeq = this.seq;
    const stored: StoredVersion = { ...version, seq: this.seq, endedSeq: undefined };
    entry.added.push(stored);
    entry.current = stored;
    entry.latest = version.record.version;
    this.#noteConfirmable(stored);
  }

  #noteConfirmable(version: Version): void {
    if (version.kind !== "node" || version.erased) return;
    const key = confirmableKey(version.record);
    if (key !== undefined) this.#confirmable.set(key, version.record.id);
  }

  /** A change that is made here prevails over what it changes, also where a replica's clock is ahead. */
  #laterOrigin(kind: RecordKind, id: string): number {
    const before = this.version(kind, id)?.record.originUpdatedAtUs ?? -Infinity;
    return Math.max(this.stampUs, before + 1);
  }
}

/** Whether what comes from another replica becomes current here. */
export function becomesCurrent(
  incoming: { originUpdatedAtUs: number; contentHash: string },
  current: Version | undefined,
): boolean {
  return current === undefined || prevails(incoming, current.record);
}

function entryOf(known: Known): Entry {
  return { ...known, before: known.current, added: [], isWiped: false };
}

function keyOf(kind: RecordKind, id: string): string {
  return `${kind} ${id}`;
}

function toKey(key: string): RecordKey {
  const kind = key.startsWith("edge ") ? "edge" : "node";
  return { kind, id: key.slice(kind.length + 1) };
}

function countChanges(entries: readonly Entry[]): CountChange[] {
  const changes = new Map<string, CountChange>();
  const count = (version: Version | undefined, by: number): void => {
    if (version === undefined || version.erased) return;
    const kind = version.kind === "edge" ? "edge" : version.record.kind;
    const { realm, invalidatedAtUs } = version.record;
    const key = `${kind} ${realm}`;
    const change = changes.get(key) ?? { realm, kind, current: 0, invalidated: 0 };
    change.current += by;
    if (invalidatedAtUs !== undefined) change.invalidated += by;
    changes.set(key, change);
  };
  for (const { before, current } of entries) {
    count(before, -1);
    count(current, 1);
  }
  return [...changes.values()].filter(({ current, invalidated }) => current !== 0 || invalidated !== 0);
}

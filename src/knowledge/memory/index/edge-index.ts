import { DEFAULT_NAMESPACE, type EdgeRecord } from "../model.ts";
import { isPrivateRealm } from "../realms.ts";
import { grown, type Names } from "./columns.ts";
import type { IdTable } from "./id-table.ts";
import { RealmEdges } from "./realm-edges.ts";
import { FORMER, INVALIDATED, LIVE, Versions, type IndexedLife, type State } from "./versions.ts";

export type IndexedEdge = IndexedLife & Pick<EdgeRecord, "src" | "dst" | "namespace" | "weight">;

/**
 * The edges of a database by the nodes at their ends; those that end in another graph are not for recall. For each node a
 * list of the edges that hold now, and one of those of the past: the weightiest first, of equal ones the newest.
 */
export class EdgeIndex {
  readonly versions: Versions;
  readonly #realms: Names;
  readonly #nodeIds: IdTable;
  readonly live = new RealmEdges((a, b) => this.compare(a, b));
  readonly past = new RealmEdges((a, b) => this.compare(a, b));
  src = new Uint32Array(64);
  dst = new Uint32Array(64);
  weight = new Float32Array(64);

  constructor(realms: Names, nodeIds: IdTable) {
    this.versions = new Versions(realms, (slot, before, after) => this.#onChange(slot, before, after));
    this.#realms = realms;
    this.#nodeIds = nodeIds;
  }

  /** Makes room for so many edges. */
  reserve(count: number): void {
    this.versions.reserve(count);
    this.#reserveSlots(count);
  }

  apply(record: IndexedEdge, isCurrent: boolean): void {
    if (record.namespace !== DEFAULT_NAMESPACE) return;
    const slot = this.versions.place(record);
    if (slot < 0) {
      if (!isCurrent) this.versions.retire(record);
      return;
    }
    if (slot >= this.weight.length) this.#reserveSlots(slot + 1);
    this.src[slot] = this.#nodeIds.numberOf(record.src);
    this.dst[slot] = this.#nodeIds.numberOf(record.dst);
    this.weight[slot] = record.weight;
    this.versions.enter(slot, isCurrent, record.invalidatedAtUs !== undefined);
  }

  /** The node at the other end of an edge of `node`. */
  otherEnd(slot: number, node: number): number {
    const src = this.src[slot] ?? 0;
    return src === node ? (this.dst[slot] ?? 0) : src;
  }

  /** The weightiest first, of equal ones the newest. */
  compare(a: number, b: number): number {
    const weightier = (this.weight[b] ?? 0) - (this.weight[a] ?? 0);
    return weightier === 0 ? this.versions.compare(a, b) : weightier;
  }

  get sizeBytes(): number {
    const columns = this.src.byteLength + this.dst.byteLength + this.weight.byteLength;
    return this.versions.sizeBytes + this.live.sizeBytes + this.past.sizeBytes + columns;
  }

  #reserveSlots(count: number): void {
    this.src = grown(this.src, count);
    this.dst = grown(this.dst, count);
    this.weight = grown(this.weight, count);
  }

  #onChange(slot: number, before: State, after: State): void {
    const from = this.#listsFor(before);
    const to = this.#listsFor(after);
    if (from === to) return;
    const src = this.src[slot] ?? 0;
    const dst = this.dst[slot] ?? 0;
    const number = this.versions.realm[slot] ?? 0;
    const realm = isPrivateRealm(this.#realms.texts[number] ?? "") ? number : undefined;
    from?.remove(src, slot, realm);
    to?.add(src, slot, realm);
    if (dst === src) return;
    from?.remove(dst, slot, realm);
    to?.add(dst, slot, realm);
  }

  #listsFor(state: State): RealmEdges | undefined {
    if (state === LIVE) return this.live;
    return state === INVALIDATED || state === FORMER ? this.past : undefined;
  }
}

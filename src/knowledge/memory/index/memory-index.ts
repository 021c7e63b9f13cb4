import type { Tombstone } from "../model.ts";
import { vectorKeyOf } from "../embed/vector-text.ts";
import { Names } from "./columns.ts";
import { EdgeIndex, type IndexedEdge } from "./edge-index.ts";
import { NodeIndex, type IndexedNode } from "./node-index.ts";
import { VectorIndex } from "./vector-index.ts";

/** Versions by commit, as an index needs them. */
export type IndexPage = {
  /** The last commit of the page: what the next page comes after. */
  seq: number;
  nodes: readonly IndexChange<IndexedNode>[];
  edges: readonly IndexChange<IndexedEdge>[];
};

/**
 * - `current`: what holds now. The version that was current before it, if any, becomes a former one: it does not come
 *   again for that.
 * - `former`: superseded already, or brought by an import that lost against a later change.
 * - `erased`: all versions of the id are gone, and must be forgotten. The id may be used again later.
 */
export type IndexChange<R> =
  | { state: "current" | "former"; record: R }
  | { state: "erased"; record: Pick<Tombstone, "id" | "version"> };

/** What recall needs of a database's memory, as of one commit, in the memory of one thread. */
export class MemoryIndex {
  readonly realms = new Names();
  /** Of the model that is configured, if any. */
  readonly vectors: VectorIndex | undefined;
  readonly nodes: NodeIndex;
  readonly edges: EdgeIndex;
  /** The last commit that is in. */
  seq = 0;

  constructor({ withVectors = false }: { withVectors?: boolean } = {}) {
    this.nodes = new NodeIndex(this.realms);
    const { ids } = this.nodes.versions;
    this.edges = new EdgeIndex(this.realms, ids);
    this.vectors = withVectors ? new VectorIndex(ids) : undefined;
  }

  /** Makes room for so many records, as they will come: arrays that grow are copied a few times. */
  reserve({ nodes, edges }: { nodes: number; edges: number }): void {
    this.nodes.reserve(nodes);
    this.edges.reserve(edges);
  }

  /** Pages come in the order of their commits; a page that came before changes nothing. */
  apply({ seq, nodes, edges }: IndexPage): void {
    for (const change of nodes) {
      if (change.state === "erased") this.nodes.versions.erase(change.record);
      else {
        const slot = this.nodes.apply(change.record, change.state === "current");
        if (slot >= 0) this.vectors?.setKey(slot, vectorKeyOf(change.record));
      }
    }
    for (const change of edges) {
      if (change.state === "erased") this.edges.versions.erase(change.record);
      else this.edges.apply(change.record, change.state === "current");
    }
    this.seq = seq;
  }

  /** Whether so much of it is erased that it had better be built anew. */
  get isWorn(): boolean {
    return [this.nodes.versions, this.edges.versions].some(
      ({ erased, slots }) => erased > WORN_VERSIONS && erased * 2 > slots,
    );
  }

  get sizeBytes(): number {
    return this.nodes.sizeBytes + this.edges.sizeBytes + (this.vectors?.sizeBytes ?? 0);
  }
}

const WORN_VERSIONS = 10_000;

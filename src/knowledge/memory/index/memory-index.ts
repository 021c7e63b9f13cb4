import type { FeedPage } from "../feed.ts";
import { Names } from "./columns.ts";
import { EdgeIndex } from "./edge-index.ts";
import { NodeIndex } from "./node-index.ts";

/** What recall needs of a database's memory, as of one commit, in the memory of one thread. */
export class MemoryIndex {
  readonly realms = new Names();
  readonly nodes = new NodeIndex(this.realms);
  readonly edges = new EdgeIndex(this.realms, this.nodes.versions.ids);
  /** The last commit that is in. */
  seq = 0;

  /** Pages come in the order of their commits; a page that came before changes nothing. */
  apply({ seq, nodes, edges }: FeedPage): void {
    for (const change of nodes) {
      if (change.state === "erased") this.nodes.versions.erase(change.record);
      else this.nodes.apply(change.record, change.state === "current");
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
    return this.nodes.sizeBytes + this.edges.sizeBytes;
  }
}

const WORN_VERSIONS = 10_000;

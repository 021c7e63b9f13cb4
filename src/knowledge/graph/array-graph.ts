import { GRAPH_LIMITS } from "./limits.ts";
import type {
  CountedWord,
  Counts,
  EdgeQuestion,
  Found,
  GraphEdge,
  GraphNode,
  GraphSource,
  SearchQuestion,
  Vocabulary,
} from "./model.ts";

/** A graph that is in memory as a whole. Nodes count as important in the order given where they have as many edges. */
export class ArrayGraph implements GraphSource {
  readonly #nodes: ReadonlyMap<string, GraphNode>;
  readonly #edges: readonly GraphEdge[];

  constructor(nodes: readonly GraphNode[], edges: readonly GraphEdge[]) {
    this.#nodes = new Map(nodes.map((node) => [node.id, node]));
    this.#edges = edges;
  }

  async mostLinked({ realm, limit }: { realm: string | undefined; limit: number }): Promise<string[]> {
    const degrees = new Map<string, number>();
    for (const { src, dst } of this.#edges) {
      for (const id of [src, dst]) degrees.set(id, (degrees.get(id) ?? 0) + 1);
    }
    const ids = this.#of(realm).map(({ id }) => id);
    return ids.toSorted((a, b) => (degrees.get(b) ?? 0) - (degrees.get(a) ?? 0)).slice(0, limit + 1);
  }

  async counts({ realm }: { realm: string | undefined }): Promise<Counts> {
    const edges = this.#edges.filter((edge) => realm === undefined || edge.realm === realm);
    return { nodes: this.#of(realm).length, edges: edges.length };
  }

  async vocabulary(): Promise<Vocabulary> {
    const labels = [...this.#nodes.values()].flatMap((node) => node.labels);
    return { labels: counted(labels), edgeTypes: counted(this.#edges.map(({ type }) => type)) };
  }

  async nodes(ids: readonly string[]): Promise<GraphNode[]> {
    return ids.flatMap((id) => this.#nodes.get(id) ?? []);
  }

  async edges({ ids, direction, onlyInternal, limit }: EdgeQuestion): Promise<GraphEdge[]> {
    const asked = new Set(ids);
    const fits = ({ src, dst }: GraphEdge): boolean => {
      if (onlyInternal) return asked.has(src) && asked.has(dst);
      return (direction !== "backward" && asked.has(src)) || (direction !== "forward" && asked.has(dst));
    };
    return this.#edges.filter(fits).slice(0, limit + 1);
  }

  async search({ words, labels, realm, limit, offset }: SearchQuestion): Promise<Found> {
    const wanted = new Set(labels);
    const found = this.#of(realm).filter((node) => {
      if (wanted.size > 0 && !node.labels.some((label) => wanted.has(label))) return false;
      const text = [node.id, ...node.labels, ...Object.values(node.props).map(String)].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    return { ids: found.slice(offset, offset + limit).map(({ id }) => id), total: found.length };
  }

  #of(realm: string | undefined): GraphNode[] {
    return [...this.#nodes.values()].filter((node) => realm === undefined || node.realm === realm);
  }
}

/** How often each word occurs, the most frequent first. */
export function counted(words: Iterable<string>): CountedWord[] {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts]
    .map(([name, count]) => ({ name, count }))
    .toSorted((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))
    .slice(0, GRAPH_LIMITS.vocabulary);
}

import type { MemoryStore } from "../memory/store.ts";
import { DEFAULT_NAMESPACE, type EdgeRecord, type LifeCycle, type NodeRecord } from "../memory/model.ts";
import { maySee } from "../memory/realms.ts";
import type { MemoryScope } from "../memory/service.ts";
import { usToText } from "../memory/times.ts";
import { brief } from "./brief.ts";
import { GRAPH_LIMITS } from "./limits.ts";
import type { EdgeQuestion, GraphEdge, GraphNode } from "./model.ts";
import type { AskSql } from "./queries.ts";
import { SqlGraph } from "./sql-graph.ts";

/**
 * What is remembered and holds now, as a graph. What is about all of it is asked of the tables of the schema `system`;
 * what is about some nodes, of the records and their indexes.
 *
 * A link may lead into another graph (`namespace`). Its end is a node here, too: with the id `<graph>/<id>`, the label
 * `elsewhere` and no links but those that lead there.
 */
export class MemoryGraph extends SqlGraph {
  readonly #store: MemoryStore;
  readonly #scope: MemoryScope;
  readonly #nowUs: () => number;

  constructor(deps: { ask: AskSql; store: MemoryStore; scope: MemoryScope; nowUs: () => number }) {
    super(deps.ask, NODES, EDGES);
    this.#store = deps.store;
    this.#scope = deps.scope;
    this.#nowUs = deps.nowUs;
  }

  override async nodes(ids: readonly string[], detail: "brief" | "whole"): Promise<GraphNode[]> {
    const nowUs = this.#nowUs();
    const inMemory = ids.filter((id) => elsewhere(id) === undefined);
    const known = await this.#store.known(this.#scope.databaseId, "node", inMemory);
    const own = known.flatMap(({ current }) => {
      if (current?.kind !== "node" || current.erased || !this.#holds(current.record, nowUs)) return [];
      return [nodeOf(current.record, detail)];
    });
    return [...own, ...ids.flatMap((id) => elsewhere(id) ?? [])];
  }

  override async edges({ ids, direction, onlyInternal, limit }: EdgeQuestion): Promise<GraphEdge[]> {
    const nowUs = this.#nowUs();
    const asked = new Set(ids);
    const inMemory = ids.filter((id) => elsewhere(id) === undefined);
    const ends = onlyInternal || direction === "forward" ? (["src"] as const) : ENDS[direction];
    const range = { limit: GRAPH_LIMITS.edges + 1, rights: this.#scope.rights };
    const found = new Map<string, GraphEdge>();
    for (const end of ends) {
      for (const version of await this.#store.edgesAt(this.#scope.databaseId, end, inMemory, range)) {
        if (version.kind !== "edge" || version.erased || !this.#holds(version.record, nowUs)) continue;
        const edge = edgeOf(version.record);
        if (onlyInternal && !asked.has(edge.dst)) continue;
        found.set(version.record.id, edge);
      }
    }
    return [...found.values()].toSorted(byEnds).slice(0, limit + 1);
  }

  #holds({ realm, validFromUs, validToUs }: Pick<LifeCycle, "realm" | "validFromUs" | "validToUs">, nowUs: number) {
    return maySee(this.#scope.rights, realm) && validFromUs <= nowUs && (validToUs === undefined || validToUs > nowUs);
  }
}

const ENDS = { backward: ["dst"], both: ["src", "dst"] } as const;

function byEnds(a: GraphEdge, b: GraphEdge): number {
  for (const key of ["src", "dst", "type"] as const) {
    if (a[key] !== b[key]) return a[key] < b[key] ? -1 : 1;
  }
  return 0;
}

const HOLDS = "t.valid_from <= now()::TIMESTAMP AND (t.valid_to IS NULL OR t.valid_to > now()::TIMESTAMP)";

const NODES = {
  from: "system.memory_nodes",
  id: "t.id",
  labels: "list_filter([t.kind, coalesce(t.memory_type, t.entity_kind)], x -> x <> '')",
  realm: "t.realm",
  where: HOLDS,
  props: [],
  texts: ["t.name", "t.content", "t.tags"],
} as const;

const EDGES = {
  from: "system.memory_edges",
  src: "t.src",
  dst: `CASE t.namespace WHEN '${DEFAULT_NAMESPACE}' THEN t.dst ELSE t.namespace || '/' || t.dst END`,
  type: "t.rel",
  realm: "t.realm",
  where: HOLDS,
  props: [],
} as const;

/** The node of another graph that the id stands for; ids of the memory's own nodes have no slash. */
function elsewhere(id: string): GraphNode | undefined {
  const at = id.indexOf("/");
  if (at <= 0) return undefined;
  return { id, labels: ["elsewhere"], realm: null, props: { graph: id.slice(0, at), id: id.slice(at + 1) } };
}

function nodeOf(record: NodeRecord, detail: "brief" | "whole"): GraphNode {
  const { id, realm, kind, name, content, tags, importance, topicKey, source, trust, props, updatedAtUs } = record;
  const said: Record<string, unknown> = {
    name,
    content: content === "" ? undefined : content,
    tags: tags.length === 0 ? undefined : tags,
    importance,
    topic_key: topicKey,
    source,
    trust,
    updated_at: usToText(updatedAtUs),
    ...(Object.keys(props).length > 0 && { props }),
  };
  const shown = Object.entries(said).filter(([, value]) => value !== undefined);
  const labels = [kind, record.memoryType ?? record.entityKind].filter((label) => label !== undefined);
  const entries = detail === "whole" ? shown : shown.map(([key, value]): [string, unknown] => [key, brief(value)]);
  return { id, labels, realm, props: Object.fromEntries(entries) };
}

function edgeOf({ src, dst, namespace, rel, realm, weight, props }: EdgeRecord): GraphEdge {
  return {
    src,
    dst: namespace === DEFAULT_NAMESPACE ? dst : `${namespace}/${dst}`,
    type: rel,
    realm,
    props: { weight, ...(Object.keys(props).length > 0 && { props: brief(props) }) },
  };
}

import { checkMayUse, type Caller } from "../../auth/caller.ts";
import { usableDatabases } from "../../auth/usable-databases.ts";
import { existingTable } from "../../auth/existing-table.ts";
import type { Catalog, DatabaseRecord } from "../../catalog/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { foldName } from "../../core/names.ts";
import type { MemoryService } from "../memory/service.ts";
import type { MemoryStore } from "../memory/store.ts";
import { GRAPH_LIMITS } from "./limits.ts";
import { MemoryGraph } from "./memory-graph.ts";
import type { Counts, Direction, GraphEdge, GraphNode, GraphPart, GraphSource, Vocabulary } from "./model.ts";
import { askingSql, type Asking, type AskSql, type GraphQueries, type QueryBudget } from "./queries.ts";
import { BUILT_IN, type GraphRegistry } from "./registry.ts";
import { schemaGraph, type Described } from "./schema-graph.ts";
import { tableGraph } from "./sql-graph.ts";

export type GraphServiceDeps = {
  catalog: Pick<Catalog, "database" | "databases" | "table" | "tables">;
  registry: GraphRegistry;
  memory: Pick<MemoryService, "scope">;
  store: MemoryStore;
  queries: GraphQueries;
  clock: Pick<Clock, "nowMs">;
};

export type GraphKind = "schema" | "memory" | "tables";
export type ListedGraph = { name: string; kind: GraphKind; description: string };

/** Where a graph is asked about: of which database, and of which of its graphs. */
export type GraphPlace = { database: string; graph: string };

export type SearchRequest = {
  text: string;
  labels: readonly string[];
  realm: string | undefined;
  limit: number;
  offset: number;
};

/** Graphs, for routes and tools alike: each shows what its caller may see. */
export class GraphService {
  readonly #deps: GraphServiceDeps;

  constructor(deps: GraphServiceDeps) {
    this.#deps = deps;
  }

  /** The same graphs, read by queries with a part of the budget. */
  within(budget: () => QueryBudget): GraphService {
    const { queries } = this.#deps;
    const lowered: GraphQueries = { run: (request) => queries.run({ ...request, budget: budget() }) };
    return new GraphService({ ...this.#deps, queries: lowered });
  }

  /** Throws `forbidden`. In a database that is not there yet there are those that are always there. */
  async list(caller: Caller, database: string): Promise<ListedGraph[]> {
    checkMayUse(caller, database);
    const found = await this.#deps.catalog.database(database);
    const stored = found === undefined ? [] : await this.#deps.registry.list(found);
    return [
      { name: "schema", kind: "schema", description: BUILT_IN.schema },
      { name: "memory", kind: "memory", description: BUILT_IN.memory },
      ...stored.map(({ name, description }) => ({ name, kind: "tables", description }) as const),
    ];
  }

  async overview(
    asking: Asking,
    place: GraphPlace,
    { realm, limit }: { realm: string | undefined; limit: number },
  ): Promise<GraphPart> {
    const source = await this.#open(asking, place);
    const ids = await source.mostLinked({ realm, limit });
    const shown = ids.slice(0, limit);
    const question = { ids: shown, direction: "both", onlyInternal: true, limit: GRAPH_LIMITS.edges } as const;
    const part = await partOf(source, shown, await source.edges(question), GRAPH_LIMITS.edges);
    return { ...part, truncated: part.truncated || ids.length > limit };
  }

  async counts(asking: Asking, place: GraphPlace, question: { realm: string | undefined }): Promise<Counts> {
    return await (await this.#open(asking, place)).counts(question);
  }

  async vocabulary(asking: Asking, place: GraphPlace): Promise<Vocabulary> {
    return await (await this.#open(asking, place)).vocabulary();
  }

  /** Throws `not_found`. */
  async node(asking: Asking, place: GraphPlace, id: string): Promise<GraphNode> {
    return await existing(await this.#open(asking, place), id, place);
  }

  /** The nodes and those one edge away. Ids that are no node's are passed over. */
  async neighbours(
    asking: Asking,
    place: GraphPlace,
    question: { ids: readonly string[]; direction: Direction; onlyInternal: boolean; limit: number },
  ): Promise<GraphPart> {
    const source = await this.#open(asking, place);
    return await partOf(source, question.ids, await source.edges(question), question.limit);
  }

  /** A node, all that is at most `depth` edges away, and the edges among these. Throws `not_found`. */
  async subgraph(
    asking: Asking,
    place: GraphPlace,
    { id, depth, limit }: { id: string; depth: number; limit: number },
  ): Promise<GraphPart> {
    const source = await this.#open(asking, place);
    await existing(source, id, place);
    const ids = new Set([id]);
    let isCut = false;
    let edge: readonly string[] = [id];
    for (let step = 0; step < depth && edge.length > 0 && !isCut; step++) {
      const question = { ids: edge, direction: "both", onlyInternal: false, limit: GRAPH_LIMITS.edges } as const;
      const found = await source.edges(question);
      const reached = new Set(found.flatMap(({ src, dst }) => [src, dst]).filter((each) => !ids.has(each)));
      const known = new Set((await source.nodes([...reached], "brief")).map((node) => node.id));
      const next = [...reached].filter((each) => known.has(each));
      isCut = found.length > GRAPH_LIMITS.edges || ids.size + next.length > limit;
      edge = next.slice(0, limit - ids.size);
      for (const each of edge) ids.add(each);
    }
    const among = { ids: [...ids], direction: "both", onlyInternal: true, limit: GRAPH_LIMITS.edges } as const;
    const part = await partOf(source, [...ids], await source.edges(among), GRAPH_LIMITS.edges);
    return { ...part, truncated: part.truncated || isCut };
  }

  async search(
    asking: Asking,
    place: GraphPlace,
    { text, ...question }: SearchRequest,
  ): Promise<{ nodes: readonly GraphNode[]; total: number }> {
    const source = await this.#open(asking, place);
    const words = [...new Set(text.toLowerCase().split(/\s+/u))].filter((word) => word !== "");
    const { ids, total } = await source.search({ ...question, words: words.slice(0, GRAPH_LIMITS.words) });
    return { nodes: inOrder(await source.nodes(ids, "brief"), ids), total };
  }

  /** Throws `forbidden`, `database_not_found`, `table_not_found`, and `not_found` for a graph that there is not. */
  async #open(asking: Asking, { database, graph }: GraphPlace): Promise<GraphSource> {
    const { caller } = asking;
    checkMayUse(caller, database);
    const { catalog, queries, registry } = this.#deps;
    const name = foldName(graph);
    if (name === "schema") return schemaGraph(await this.#described(caller));
    const ask = askingSql(queries, asking, database);
    if (name === "memory") return await this.#memoryGraph(caller, database, ask);
    const found = await this.#existing(database);
    const stored = await registry.find(found, graph);
    if (stored === undefined) {
      throw new EngineError("not_found", `there is no graph ${JSON.stringify(graph)} in ${found.name}`);
    }
    const tableNamed = async (table: string) => await existingTable(catalog, caller, found.name, table);
    const tables = { nodes: await tableNamed(stored.nodesTable), edges: await tableNamed(stored.edgesTable) };
    return tableGraph(ask, stored.columns, tables);
  }

  async #memoryGraph(caller: Caller, database: string, ask: AskSql): Promise<MemoryGraph> {
    const { clock, memory, store } = this.#deps;
    const scope = await memory.scope(caller, database);
    return new MemoryGraph({ ask, store, scope, nowUs: () => clock.nowMs() * 1_000 });
  }

  /** Of every database that the caller may use. */
  async #described(caller: Caller): Promise<Described[]> {
    const { catalog, registry } = this.#deps;
    const names = await usableDatabases(catalog, caller);
    const described = await Promise.all(
      names.map(async (name): Promise<Described[]> => {
        const database = await catalog.database(name);
        if (database === undefined) return [];
        return [{ database, tables: await catalog.tables(name), graphs: await registry.list(database) }];
      }),
    );
    return described.flat();
  }

  async #existing(name: string): Promise<DatabaseRecord> {
    const found = await this.#deps.catalog.database(name);
    if (found !== undefined) return found;
    throw new EngineError("database_not_found", `database ${JSON.stringify(name)} does not exist`);
  }
}

/** The nodes of those ids, and of the ends of the edges; an edge whose end is no node is left out. */
async function partOf(
  source: GraphSource,
  ids: readonly string[],
  edges: readonly GraphEdge[],
  limit: number,
): Promise<GraphPart> {
  const shown = edges.slice(0, limit);
  const ends = [...new Set([...ids, ...shown.flatMap(({ src, dst }) => [src, dst])])];
  const wanted = ends.slice(0, GRAPH_LIMITS.nodes);
  const nodes = inOrder(await source.nodes(wanted, "brief"), wanted);
  const known = new Set(nodes.map(({ id }) => id));
  const whole = shown.filter(({ src, dst }) => known.has(src) && known.has(dst));
  return { nodes, edges: whole, truncated: edges.length > limit || ends.length > wanted.length };
}

async function existing(source: GraphSource, id: string, { graph }: GraphPlace): Promise<GraphNode> {
  const [node] = await source.nodes([id], "whole");
  if (node !== undefined) return node;
  throw new EngineError("not_found", `there is no node ${JSON.stringify(id)} in the graph ${graph}`);
}

function inOrder(nodes: readonly GraphNode[], ids: readonly string[]): GraphNode[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

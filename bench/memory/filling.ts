import { setTimeout } from "node:timers/promises";
import { entityId, edgeId } from "../../src/knowledge/memory/ids.ts";
import { DEFAULT_NAMESPACE, type EdgeRecord, type NodeRecord } from "../../src/knowledge/memory/model.ts";
import { wireEdge, wireNode } from "../../src/knowledge/memory/wire.ts";
import { requiredPostgres } from "../peers/postgres-server.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { startEmbeddings } from "./embeddings.ts";
import type { Corpus } from "./texts.ts";

/** Servers with memory, and how it is filled over HTTP. */

export const CATALOGS = ["sqlite", "postgres"] as const;

export type MemoryServers = {
  /** `url`: of the catalog, which is a file of the home without. */
  start: (home: string, url: string | undefined, env?: Readonly<Record<string, string>>) => Promise<BenchServer>;
  /** Of a new catalog; undefined where it is a file. */
  newCatalog: () => Promise<string | undefined>;
  processes: () => Readonly<Record<string, number>>;
  close: () => Promise<void>;
};

/** `dimensions`: of vectors from a provider on this machine that hardly computes; 0 for none. */
export async function openMemoryServers(options: {
  name: string;
  catalog: (typeof CATALOGS)[number];
  dimensions: number;
}): Promise<MemoryServers> {
  const postgres = options.catalog === "postgres" ? await requiredPostgres(options.name) : undefined;
  const embeddings = options.dimensions > 0 ? await startEmbeddings(options.dimensions) : undefined;
  return {
    start: (home, url, env) =>
      startBenchServer({
        home,
        env: { ...env, ...embeddings?.env, ...(url !== undefined && { ENGINE_CATALOG_URL: url }) },
      }),
    newCatalog: async () => await postgres?.createDatabase(),
    processes: () => (postgres === undefined ? {} : { postgres: postgres.pid }),
    close: async () => {
      await embeddings?.stop();
      await postgres?.stop();
    },
  };
}

/** Entities and edges have the ids that follow from what they are about, or they are not accepted. */
export function withDerivedIds({ nodes, edges, questions }: Corpus): Corpus {
  const ids = new Map<string, string>();
  const derived = nodes.map((node): NodeRecord => {
    if (node.kind === "memory") return node;
    const id = entityId(node.realm, node.entityKind ?? "", node.name ?? "");
    ids.set(node.id, id);
    return { ...node, id };
  });
  const ended = edges.map((edge): EdgeRecord => {
    const ends = { ...edge, src: ids.get(edge.src) ?? edge.src, dst: ids.get(edge.dst) ?? edge.dst };
    return { ...ends, id: edgeId({ ...ends, namespace: DEFAULT_NAMESPACE }) };
  });
  const apart = new Map(ended.map((edge) => [edge.id, edge]));
  return { nodes: derived, edges: [...apart.values()], questions };
}

/** Items in one import. */
const IMPORTED = 5_000;

export async function importAll(server: BenchServer, { nodes, edges }: Corpus): Promise<void> {
  for (let at = 0; at < nodes.length; at += IMPORTED) {
    await post(server, "import", { memory_nodes: nodes.slice(at, at + IMPORTED).map(wireNode) });
  }
  for (let at = 0; at < edges.length; at += IMPORTED) {
    await post(server, "import", { memory_edges: edges.slice(at, at + IMPORTED).map(wireEdge) });
  }
}

const POLL_MS = 500;

/** Resolves when all memories have vectors, or at once where there is no model. */
export async function untilEmbedded(server: BenchServer): Promise<void> {
  for (;;) {
    const response = await fetch(`${server.url}/v1/agent/memory/overview`);
    const { embedding } = (await response.json()) as { embedding: { state: string; reason: string | null } };
    if (embedding.state === "failing") throw new Error(`vectors cannot be had: ${embedding.reason}`);
    if (embedding.state === "off" || embedding.state === "ready") return;
    await setTimeout(POLL_MS);
  }
}

export async function post(server: BenchServer, route: string, body: unknown): Promise<void> {
  const response = await fetch(`${server.url}/v1/agent/memory/${route}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${route} answered ${response.status}: ${text}`);
}

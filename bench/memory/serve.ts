import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { entityId, edgeId } from "../../src/knowledge/memory/ids.ts";
import { DEFAULT_NAMESPACE, type EdgeRecord, type NodeRecord } from "../../src/knowledge/memory/model.ts";
import { wireEdge, wireNode } from "../../src/knowledge/memory/wire.ts";
import { readArguments } from "../support/arguments.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import { HttpConnection } from "../support/http-connection.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { startEmbeddings } from "./embeddings.ts";
import { corpusOf, type Corpus } from "./texts.ts";

/**
 * Question: what do a question, by the route and by MCP, and a save take over HTTP, with PageRank and without, how many
 * records does an import take in a second, and how long does a server that starts on all of them take until it has
 * answered a first question, and what does it hold then?
 *
 *     node bench/memory/serve.ts [--memories 100000] [--edges 400000] [--questions 500] [--saves 200] [--catalog URL]
 *         [--dimensions 384]
 *
 * One client asks one thing after the other. The catalog is a file unless a URL of an empty PostgreSQL database is given.
 * With `--dimensions` memories and questions have vectors of so many, from a provider on this machine that hardly
 * computes.
 */
const OPTIONS = {
  memories: { type: "string", default: "100000" },
  edges: { type: "string", default: "400000" },
  questions: { type: "string", default: "500" },
  saves: { type: "string", default: "200" },
  catalog: { type: "string" },
  dimensions: { type: "string" },
} as const;

/** Items in one import. */
const IMPORTED = 5_000;

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  const [memories, edges, questions] = [options.count("memories"), options.count("edges"), options.count("questions")];
  const corpus = withDerivedIds(corpusOf({ memories, edges, questions, seed: 1 }));
  const catalog = options.text("catalog");
  const hasVectors = options.text("dimensions") !== undefined;
  const embeddings = hasVectors ? await startEmbeddings(options.count("dimensions")) : undefined;
  await withTemporaryFolder(async (home) => {
    const start = (env: Record<string, string>) =>
      startBenchServer({
        home,
        env: { ...env, ...embeddings?.env, ...(catalog !== undefined && { ENGINE_CATALOG_URL: catalog }) },
        tables: [],
      });
    await fill(await start({}), corpus);
    for (const ppr of ["0", "1"]) {
      const startedMs = performance.now();
      const server = await start({ ENGINE_MEMORY_PPR: ppr });
      await measure(server, { ppr, startedMs, corpus, saves: options.count("saves") });
    }
  }).finally(() => embeddings?.stop());
}

/** Entities and edges have the ids that follow from what they are about, or they are not accepted. */
function withDerivedIds({ nodes, edges, questions }: Corpus): Corpus {
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

async function fill(server: BenchServer, { nodes, edges }: Corpus): Promise<void> {
  try {
    const startedMs = performance.now();
    for (let at = 0; at < nodes.length; at += IMPORTED) {
      await post(server, "import", { memory_nodes: nodes.slice(at, at + IMPORTED).map(wireNode) });
    }
    for (let at = 0; at < edges.length; at += IMPORTED) {
      await post(server, "import", { memory_edges: edges.slice(at, at + IMPORTED).map(wireEdge) });
    }
    const seconds = (performance.now() - startedMs) / 1000;
    const count = nodes.length + edges.length;
    console.log(`import: ${count} records in ${shown(seconds)} s, ${shown(count / seconds)} a second`);
    const embeddedMs = await untilEmbedded(server);
    if (embeddedMs !== undefined) console.log(`all have vectors ${shown(embeddedMs / 1000)} s later`);
  } finally {
    await server.stop();
  }
}

/** Resolves to how long that took; undefined where there is no model. */
async function untilEmbedded(server: BenchServer): Promise<number | undefined> {
  const startedMs = performance.now();
  for (;;) {
    const response = await fetch(`${server.url}/v1/agent/memory/overview`);
    const { embedding } = (await response.json()) as { embedding: { state: string; reason: string | null } };
    if (embedding.state === "off") return undefined;
    if (embedding.state === "failing") throw new Error(`vectors cannot be had: ${embedding.reason}`);
    if (embedding.state === "ready") return performance.now() - startedMs;
    await setTimeout(POLL_MS);
  }
}

const POLL_MS = 500;

async function post(server: BenchServer, route: string, body: unknown): Promise<void> {
  const response = await fetch(`${server.url}/v1/agent/memory/${route}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${route} answered ${response.status}: ${text}`);
}

async function measure(
  server: BenchServer,
  { ppr, startedMs, corpus, saves }: { ppr: string; startedMs: number; corpus: Corpus; saves: number },
): Promise<void> {
  try {
    const before = { cpu: server.cpuSeconds(), bytes: server.memory().residentBytes };
    const listeningMs = performance.now() - startedMs;
    const [first = ""] = corpus.questions;
    await post(server, "query", { query: first });
    const readyMs = performance.now() - startedMs;
    const cpuMs = (server.cpuSeconds() - before.cpu) * 1000;
    const { residentBytes } = server.memory();
    const [own, all] = [shown((residentBytes - before.bytes) / MIB), shown(residentBytes / MIB)];
    console.log(
      `ENGINE_MEMORY_PPR=${ppr}: listening after ${shown(listeningMs)} ms, first answer after ${shown(readyMs)} ms ` +
        `(${shown(cpuMs)} of CPU for it), ${own} MiB more resident, ${all} in all`,
    );
    const asked = await timed(
      server,
      "/v1/agent/memory/query",
      corpus.questions.map((query) => ({ query })),
    );
    const called = await timed(server, "/mcp/v1", corpus.questions.map(recallCall));
    const said = Array.from({ length: saves }, (_, i) => ({ memory_nodes: [{ content: `saved ${ppr} ${i}` }] }));
    const saved = await timed(server, "/v1/agent/memory/import", said);
    printTable(
      ["", "p50 ms", "p95 ms", "CPU ms each"],
      [
        ["question", ...asked],
        ["the same by MCP", ...called],
        ["save", ...saved],
      ],
    );
  } finally {
    await server.stop();
  }
}

function recallCall(query: string, id: number): unknown {
  return { jsonrpc: "2.0", id, method: "tools/call", params: { name: "recall_memory", arguments: { query } } };
}

/** One after the other; the first fifth warms up. */
async function timed(server: BenchServer, path: string, bodies: readonly unknown[]): Promise<string[]> {
  const { hostname, port } = new URL(server.url);
  const connection = await HttpConnection.open(hostname, Number(port));
  const warming = Math.floor(bodies.length / 5);
  const times: number[] = [];
  let cpuBefore = 0;
  for (const [i, body] of bodies.entries()) {
    if (i === warming) cpuBefore = server.cpuSeconds();
    const bytes = Buffer.from(JSON.stringify(body));
    const head =
      `POST ${path} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\n` +
      `MCP-Protocol-Version: 2025-11-25\r\nContent-Length: ${bytes.length}\r\n\r\n`;
    const startedMs = performance.now();
    const { status, body: text } = await connection.send(head, bytes);
    times.push(performance.now() - startedMs);
    if (status >= 300 || text.includes('"isError":true')) throw new Error(`${path} answered ${status}: ${text}`);
  }
  const cpuMs = (server.cpuSeconds() - cpuBefore) * 1000;
  connection.close();
  const sorted = Float64Array.from(times.slice(warming)).toSorted();
  return [quantile(sorted, 0.5), quantile(sorted, 0.95), cpuMs / (bodies.length - warming)].map(shown);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));

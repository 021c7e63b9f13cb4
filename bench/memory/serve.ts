import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { quantile } from "../../src/capacity/quantile.ts";
import { defineBenchmark, type Measure, type Side } from "../suite/benchmark.ts";
import { HttpConnection } from "../support/http-connection.ts";
import { MIB } from "../support/report.ts";
import type { BenchServer } from "../support/server.ts";
import { CATALOGS, importAll, openMemoryServers, post, untilEmbedded, withDerivedIds } from "./filling.ts";
import { corpusOf } from "./texts.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "memory/serve",
  question:
    "What do a question, by the route and by MCP, and a save take over HTTP, with PageRank and without; and how long does a " +
    "server that starts on very many memories take until it has answered a first question, and what does it hold then?",
  notMeasured:
    "The import (memory/import), and several clients at once: one asks one thing after the other, and the first fifth " +
    "warms up. Vectors come from a provider on this machine that hardly computes.",
  options: z.strictObject({
    memories: count.default(100_000).describe("with a text each"),
    edges: count.default(400_000).describe("between them"),
    questions: count.default(500).describe("in one round, by each way"),
    saves: count.default(200).describe("in one round"),
    dimensions: z.coerce.number().int().nonnegative().default(0).describe("of vectors; 0 for none"),
    catalog: z.enum(CATALOGS).default("sqlite").describe(CATALOGS.join(", ")),
  }),
  measures: {
    listening: { unit: "ms", better: "less", doc: "from the start of a server until it listens" },
    first: { unit: "ms", better: "less", doc: "from the start of a server until it has answered a first question" },
    firstCpu: { unit: "CPU ms", better: "less", doc: "of the first question" },
    held: { unit: "MiB", better: "less", doc: "resident memory after the first question, above that before" },
    resident: { unit: "MiB", better: "less", doc: "resident memory after the first question" },
    ...waits("question", "a question by the route"),
    ...waits("mcp", "a question by MCP"),
    ...waits("save", "a save"),
  },
  rounds: 3,
  open: async ({ memories, edges, questions, saves, dimensions, catalog }, { folder, seed }) => {
    const corpus = withDerivedIds(corpusOf({ memories, edges, questions, seed }));
    const home = join(folder, "home");
    await mkdir(home, { recursive: true });
    const servers = await openMemoryServers({ name: "memory/serve", catalog, dimensions });
    const { processes, close } = servers;
    try {
      const url = await servers.newCatalog();
      const filling = await servers.start(home, url);
      try {
        await importAll(filling, corpus);
        await untilEmbedded(filling);
      } finally {
        await filling.stop();
      }
      let done = 0;
      const sideOf = (name: string, ppr: string): Side => ({
        name,
        round: async () => {
          const startedMs = performance.now();
          const server = await servers.start(home, url, { ENGINE_MEMORY_PPR: ppr });
          try {
            return await measure(server, { startedMs, questions: corpus.questions, saved: savesOf(done++, saves) });
          } finally {
            await server.stop();
          }
        },
        processes,
      });
      return { sides: [sideOf("engine", "0"), sideOf("engine, PPR", "1")], close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

function waits(name: string, doc: string): Record<string, Measure> {
  return {
    [name]: { unit: "ms", better: "less", doc: `${doc}: median` },
    [`${name}P95`]: { unit: "ms", better: "less", doc: `${doc}: but for 5 %` },
    [`${name}Cpu`]: { unit: "CPU ms", better: "less", doc: `${doc}: of the server` },
  };
}

/** That no other round has saved. */
function savesOf(round: number, count: number): unknown[] {
  return Array.from({ length: count }, (_, i) => ({ memory_nodes: [{ content: `saved ${round} ${i}` }] }));
}

type Load = { startedMs: number; questions: readonly string[]; saved: readonly unknown[] };

async function measure(server: BenchServer, { startedMs, questions, saved }: Load): Promise<Record<string, number>> {
  const before = { cpu: server.cpuSeconds(), bytes: server.memory().residentBytes };
  const listening = performance.now() - startedMs;
  const [query = ""] = questions;
  await post(server, "query", { query });
  const first = performance.now() - startedMs;
  const firstCpu = (server.cpuSeconds() - before.cpu) * 1_000;
  const { residentBytes } = server.memory();
  const asked = questions.map((text) => ({ query: text }));
  return {
    listening,
    first,
    firstCpu,
    held: (residentBytes - before.bytes) / MIB,
    resident: residentBytes / MIB,
    ...(await timed("question", server, "/v1/agent/memory/query", asked)),
    ...(await timed("mcp", server, "/mcp/v1", questions.map(recallCall))),
    ...(await timed("save", server, "/v1/agent/memory/import", saved)),
  };
}

function recallCall(query: string, id: number): unknown {
  return { jsonrpc: "2.0", id, method: "tools/call", params: { name: "recall_memory", arguments: { query } } };
}

/** One after the other; the first fifth warms up. */
async function timed(
  name: string,
  server: BenchServer,
  path: string,
  bodies: readonly unknown[],
): Promise<Record<string, number>> {
  const { hostname, port } = new URL(server.url);
  const connection = await HttpConnection.open(hostname, Number(port));
  const warming = Math.floor(bodies.length / 5);
  const times: number[] = [];
  let cpuBefore = server.cpuSeconds();
  try {
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
  } finally {
    connection.close();
  }
  const cpuMs = (server.cpuSeconds() - cpuBefore) * 1_000;
  const sorted = Float64Array.from(times.slice(warming)).toSorted();
  return {
    [name]: quantile(sorted, 0.5),
    [`${name}P95`]: quantile(sorted, 0.95),
    [`${name}Cpu`]: cpuMs / (bodies.length - warming),
  };
}

import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { CATALOGS, importAll, openMemoryServers, untilEmbedded, withDerivedIds } from "./filling.ts";
import { corpusOf } from "./texts.ts";

export const benchmark = defineBenchmark({
  name: "memory/import",
  question:
    "How many records of memory does an import over HTTP take in a second, and how long until all have vectors?",
  notMeasured: "What a model of embeddings takes: vectors come from a provider on this machine that hardly computes.",
  options: z.strictObject({
    memories: z.coerce.number().int().positive().default(100_000).describe("with a text each"),
    edges: z.coerce.number().int().positive().default(400_000).describe("between them"),
    dimensions: z.coerce.number().int().nonnegative().default(0).describe("of vectors; 0 for none"),
    catalog: z.enum(CATALOGS).default("sqlite").describe(CATALOGS.join(", ")),
  }),
  measures: {
    records: { unit: "records/s", better: "more", doc: "memories and edges, in requests of 5,000 one after the other" },
    cpu: { unit: "CPU ms", better: "less", doc: "of the server for 1,000 records" },
    embedded: { unit: "s", better: "less", doc: "from the end of the import until all memories have vectors" },
  },
  rounds: 3,
  open: async ({ memories, edges, dimensions, catalog }, { folder, seed }) => {
    const corpus = withDerivedIds(corpusOf({ memories, edges, questions: 1, seed }));
    const records = corpus.nodes.length + corpus.edges.length;
    const servers = await openMemoryServers({ name: "memory/import", catalog, dimensions });
    let done = 0;
    const round = async () => {
      const home = join(folder, `home-${done++}`);
      await mkdir(home, { recursive: true });
      const server = await servers.start(home, await servers.newCatalog());
      try {
        const cpuBefore = server.cpuSeconds();
        const startedMs = performance.now();
        await importAll(server, corpus);
        const importedMs = performance.now();
        const cpuSeconds = server.cpuSeconds() - cpuBefore;
        await untilEmbedded(server);
        const embedded = (performance.now() - importedMs) / 1_000;
        return {
          records: (records * 1_000) / (importedMs - startedMs),
          cpu: (cpuSeconds * 1e6) / records,
          ...(dimensions > 0 && { embedded }),
        };
      } finally {
        await server.stop();
        await rm(home, { recursive: true });
      }
    };
    const { processes, close } = servers;
    return { sides: [{ name: "engine", round, processes }], close };
  },
});

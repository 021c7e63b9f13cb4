import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { MIB } from "../support/report.ts";
import { Fts, indexOf } from "./sides.ts";
import { corpusOf } from "./texts.ts";

export const benchmark = defineBenchmark({
  name: "memory/build",
  question: "How long does the index of a memory take to build from records in memory, and what does it hold?",
  notMeasured: "Reading the records. FTS5 has no edges, and its size is not told.",
  options: z.strictObject({
    memories: z.coerce.number().int().positive().default(100_000).describe("with a text each"),
    edges: z.coerce.number().int().positive().default(400_000).describe("between them"),
  }),
  measures: {
    cpu: { unit: "CPU s", better: "less", doc: "until the first question could be asked" },
    size: { unit: "MiB", better: "less", doc: "of the index" },
  },
  rounds: 3,
  hasPeers: true,
  open: async ({ memories, edges }, { seed }) => {
    const corpus = corpusOf({ memories, edges, questions: 1, seed });
    return {
      sides: [
        {
          name: "recall",
          round: async () => {
            const before = process.cpuUsage();
            const index = indexOf(corpus.nodes, corpus.edges);
            return { cpu: cpuSecondsSince(before), size: index.sizeBytes / MIB };
          },
        },
        {
          name: "FTS5",
          round: async () => {
            const before = process.cpuUsage();
            const fts = new Fts(corpus.nodes);
            const cpu = cpuSecondsSince(before);
            fts.find(corpus.questions[0] ?? "");
            return { cpu };
          },
        },
      ],
    };
  },
});

function cpuSecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

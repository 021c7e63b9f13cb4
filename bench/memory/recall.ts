import { z } from "zod";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { Fts, indexOf, recalled, WAYS } from "./sides.ts";
import { corpusOf } from "./texts.ts";

export const benchmark = defineBenchmark({
  name: "memory/recall",
  question: "What does a question to memory cost in CPU, against SQLite's FTS5 asked for any of the same words?",
  notMeasured:
    "HTTP, the thread of its own that recall has, reading texts. Both are asked for ten, and find other ones.",
  options: z.strictObject({
    memories: z.coerce.number().int().positive().default(100_000).describe("with a text each"),
    edges: z.coerce.number().int().positive().default(400_000).describe("between them"),
    questions: z.coerce.number().int().positive().default(200).describe("in one round"),
  }),
  measures: {
    cpu: { unit: "CPU ms", better: "less", doc: "of one question" },
    p50: { unit: "ms", better: "less", doc: "of one question" },
    p95: { unit: "ms", better: "less", doc: "of one question" },
  },
  rounds: 5,
  hasPeers: true,
  open: async ({ memories, edges, questions }, { seed }) => {
    const corpus = corpusOf({ memories, edges, questions, seed });
    const index = indexOf(corpus.nodes, corpus.edges);
    const fts = new Fts(corpus.nodes);
    const ours = WAYS.toReversed().map(({ name, ...way }) =>
      sideOf(name, corpus.questions, (question) => recalled(index, question, way)),
    );
    return { sides: [...ours, sideOf("FTS5", corpus.questions, (question) => fts.find(question))] };
  },
});

/** All sides work on this thread alone. */
function sideOf(name: string, questions: readonly string[], ask: (question: string) => string[]): Side {
  const round = async () => {
    const before = process.cpuUsage();
    const times = Float64Array.from(questions, (question) => {
      const startedMs = performance.now();
      ask(question);
      return performance.now() - startedMs;
    }).toSorted();
    const { user, system } = process.cpuUsage(before);
    const cpu = (user + system) / 1_000 / questions.length;
    return { cpu, p50: quantile(times, 0.5), p95: quantile(times, 0.95) };
  };
  return { name, round };
}

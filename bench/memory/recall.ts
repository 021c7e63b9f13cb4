import { fileURLToPath } from "node:url";
import type { MemoryIndex } from "../../src/knowledge/memory/index/memory-index.ts";
import { readArguments } from "../support/arguments.ts";
import { machine, MIB, printTable, quantile, shown } from "../support/report.ts";
import { Fts, indexOf, recalled, WAYS } from "./sides.ts";
import { corpusOf } from "./texts.ts";

/**
 * Question: what does a question to memory cost in CPU, against SQLite's FTS5 asked for any of the same words; how long
 * does an index take to build from records in memory, and what does it hold? Both sides are asked for ten.
 *
 *     node bench/memory/recall.ts [--memories 100000] [--edges 400000] [--questions 200]
 */
const OPTIONS = {
  memories: { type: "string", default: "100000" },
  edges: { type: "string", default: "400000" },
  questions: { type: "string", default: "200" },
} as const;

export function main(args: readonly string[]): void {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  const [memories, edges, questions] = [options.count("memories"), options.count("edges"), options.count("questions")];
  const corpus = corpusOf({ memories, edges, questions, seed: 1 });
  const startedMs = performance.now();
  const before = process.cpuUsage();
  const index = indexOf(corpus.nodes, corpus.edges);
  const buildMs = performance.now() - startedMs;
  const cpuMs = cpuMsSince(before);
  const built = `built in ${shown(buildMs)} ms (${shown(cpuMs)} of CPU), ${shown(index.sizeBytes / MIB)} MiB`;
  console.log(`${memories} nodes, ${edges} edges: ${built}`);
  compare(index, new Fts(corpus.nodes), corpus.questions);
}

function compare(index: MemoryIndex, fts: Fts, questions: readonly string[]): void {
  const rows = [
    ...WAYS.map(({ name, ...way }): [string, Measured] => [
      name,
      measured(questions, (question) => recalled(index, question, way)),
    ]),
    ["FTS5", measured(questions, (question) => fts.find(question))] as const,
  ];
  const fts5 = rows.at(-1)?.[1].mean ?? 0;
  printTable(
    ["side", "p50 ms", "p95 ms", "CPU ms each", "FTS5 / it"],
    rows.map(([name, { p50, p95, mean }]) => [name, shown(p50), shown(p95), shown(mean), `${shown(fts5 / mean)}×`]),
  );
}

type Measured = { p50: number; p95: number; mean: number };

/** Both sides work on this thread alone. */
function measured(questions: readonly string[], ask: (question: string) => string[]): Measured {
  for (const question of questions.slice(0, 50)) ask(question);
  const before = process.cpuUsage();
  const times = Float64Array.from(questions, (question) => {
    const startedMs = performance.now();
    ask(question);
    return performance.now() - startedMs;
  }).toSorted();
  const mean = cpuMsSince(before) / questions.length;
  return { p50: quantile(times, 0.5), p95: quantile(times, 0.95), mean };
}

function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2));

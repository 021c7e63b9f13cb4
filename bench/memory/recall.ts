import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DatabaseSync } from "../../src/db/sqlite/driver.ts";
import { MemoryIndex } from "../../src/knowledge/memory/index/memory-index.ts";
import type { EdgeRecord, NodeRecord } from "../../src/knowledge/memory/model.ts";
import type { Asked, Question, RatingOptions } from "../../src/knowledge/memory/recall/question.ts";
import { rank } from "../../src/knowledge/memory/recall/rank.ts";
import { View } from "../../src/knowledge/memory/recall/view.ts";
import { readArguments } from "../support/arguments.ts";
import { machine, MIB, printTable, quantile, shown } from "../support/report.ts";
import { corpusOf, edgeOf, nodeOf, uuid } from "./texts.ts";

/**
 * Questions: what does a question to memory cost in CPU, against SQLite's FTS5 asked for any of the same words; how long
 * does an index take to build, and what does it hold? Are headings answered by their own paragraphs, against FTS5, and
 * with edges between paragraphs that follow one another?
 *
 *     node --expose-gc bench/memory/recall.ts [--memories 100000] [--edges 400000] [--questions 200] [--documents FOLDER]
 *
 * Both sides are asked for ten, and a heading is answered by the share of its paragraphs that are among them. Documents are the Markdown files below a folder; those of this repository and of
 * its packages unless given.
 */
const OPTIONS = {
  memories: { type: "string", default: "100000" },
  edges: { type: "string", default: "400000" },
  questions: { type: "string", default: "200" },
  documents: { type: "string" },
} as const;

const LIMIT = 10;
const PLAIN: RatingOptions = { ppr: false, classDecay: false };
const PPR: RatingOptions = { ppr: true, classDecay: false };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  const plan = {
    memories: options.count("memories"),
    edges: options.count("edges"),
    questions: options.count("questions"),
  };
  cost(plan);
  const repository = fileURLToPath(new URL("../..", import.meta.url));
  const given = options.text("documents");
  const folders = given === undefined ? [join(repository, "docs"), join(repository, "node_modules")] : [given];
  knownItems(folders.flatMap(markdownBelow).flatMap(sectionsOf));
}

function cost(plan: { memories: number; edges: number; questions: number }): void {
  const { nodes, edges, questions } = corpusOf({ ...plan, seed: 1 });
  const { index, buildMs } = built(nodes, edges);
  const fts = new Fts(nodes.map(({ id, name, content }) => ({ id, text: `${name ?? ""} ${content}` })));
  const rows = [
    ["recall", measured(questions, (question) => recalled(index, question, 1, PLAIN))],
    ["recall, PPR", measured(questions, (question) => recalled(index, question, 1, PPR))],
    ["recall, words alone", measured(questions, (question) => recalled(index, question, 0, PLAIN))],
    ["FTS5", measured(questions, (question) => fts.find(question))],
  ] as const;
  const fts5 = rows.at(-1)?.[1].mean ?? 0;
  console.log(
    `${plan.memories} nodes, ${plan.edges} edges: built in ${shown(buildMs)} ms, ${shown(index.sizeBytes / MIB)} MiB`,
  );
  printTable(
    ["side", "p50 ms", "p95 ms", "CPU ms each", "FTS5 / it"],
    rows.map(([name, { p50, p95, mean }]) => [name, shown(p50), shown(p95), shown(mean), `${shown(fts5 / mean)}×`]),
  );
}

function built(nodes: readonly NodeRecord[], edges: readonly EdgeRecord[]): { index: MemoryIndex; buildMs: number } {
  const index = new MemoryIndex();
  const startedMs = performance.now();
  const pageSize = 5_000;
  let seq = 0;
  for (let at = 0; at < Math.max(nodes.length, edges.length); at += pageSize) {
    seq++;
    const page = <R>(records: readonly R[]) =>
      records.slice(at, at + pageSize).map((record) => ({ state: "current" as const, seq, record }));
    index.apply({ seq, nodes: page(nodes), edges: page(edges), hasMore: true });
  }
  return { index, buildMs: performance.now() - startedMs };
}

function recalled(index: MemoryIndex, query: string, expandHops: number, options: RatingOptions): string[] {
  const question: Question = { ...EVERYTHING, query };
  const asked: Asked = { question, rights: { own: "user:ann" }, nowUs: 1_767_312_000_000_000 };
  const { memories } = rank(new View(index, asked), { query, expandHops }, options);
  return memories.slice(0, LIMIT).map(({ node }) => index.nodes.versions.ids.idOf(node));
}

const EVERYTHING: Omit<Question, "query"> = {
  realms: [],
  memoryType: undefined,
  tags: [],
  importanceMin: undefined,
  asOfUs: undefined,
  knownAtUs: undefined,
  includeInvalidated: false,
  limit: LIMIT,
  expandHops: 1,
};

/** FTS5 with English stems, asked for any of the words. */
class Fts {
  readonly #db = new DatabaseSync(":memory:");
  readonly #ids: string[] = [];

  constructor(texts: readonly { id: string; text: string }[]) {
    this.#db.exec("CREATE VIRTUAL TABLE t USING fts5(text, content='', tokenize='porter unicode61'); BEGIN");
    const insert = this.#db.prepare("INSERT INTO t (rowid, text) VALUES (?, ?)");
    for (const [i, { id, text }] of texts.entries()) {
      insert.run(i + 1, text);
      this.#ids.push(id);
    }
    this.#db.exec("COMMIT; INSERT INTO t (t) VALUES ('optimize')");
  }

  find(question: string): string[] {
    const words = question.match(/[\p{L}\p{N}]+/gu) ?? [];
    const any = [...new Set(words)].map((word) => `"${word}"`).join(" OR ");
    const statement = this.#db.prepare("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?");
    return statement.all(any, LIMIT).map((row) => this.#ids[Number(row["rowid"]) - 1] ?? "");
  }
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
  const { user, system } = process.cpuUsage(before);
  return { p50: quantile(times, 0.5), p95: quantile(times, 0.95), mean: (user + system) / 1000 / questions.length };
}

type Section = { heading: string; paragraphs: string[] };

function knownItems(sections: readonly Section[]): void {
  const nodes: NodeRecord[] = [];
  const edges: EdgeRecord[] = [];
  const sectionOf = new Map<string, number>();
  for (const [number, { paragraphs }] of sections.entries()) {
    for (const [i, paragraph] of paragraphs.entries()) {
      const id = uuid(nodes.length);
      if (i > 0) edges.push(edgeOf(edges.length, uuid(nodes.length - 1), id, "follows"));
      nodes.push(nodeOf(nodes.length, false, paragraph));
      sectionOf.set(id, number);
    }
  }
  const linked = built(nodes, edges).index;
  const fts = new Fts(nodes.map(({ id, content }) => ({ id, text: content })));
  const answered = (ask: (heading: string) => string[]) => {
    const shares = sections.map(({ heading, paragraphs }, number) => {
      const right = ask(heading).filter((id) => sectionOf.get(id) === number);
      return right.length / Math.min(paragraphs.length, LIMIT);
    });
    return shares.reduce((sum, share) => sum + share, 0) / shares.length;
  };
  const fts5 = answered((heading) => fts.find(heading));
  const rows = [
    ["recall, words alone", answered((heading) => recalled(linked, heading, 0, PLAIN))],
    ["recall, linked", answered((heading) => recalled(linked, heading, 1, PLAIN))],
    ["recall, linked, PPR", answered((heading) => recalled(linked, heading, 1, PPR))],
    ["FTS5", fts5],
  ] as const;
  console.log(
    `${sections.length} headings over ${nodes.length} paragraphs: share of a heading's paragraphs among the first ${LIMIT}`,
  );
  printTable(
    ["side", "found", "it / FTS5"],
    rows.map(([name, share]) => [name, shown(share), `${shown(share / fts5)}×`]),
  );
}

const MOST_FILES = 3_000;

function markdownBelow(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.md$/i.test(name));
  return files
    .toSorted()
    .slice(0, MOST_FILES)
    .map((name) => join(folder, name));
}

/** Headings of several words that say something, with paragraphs that do not repeat them. */
function sectionsOf(file: string): Section[] {
  const text = readFileSync(file, "utf8").replace(/```[^]*?```/g, "");
  return text
    .split(/^#{2,4} +/m)
    .slice(1)
    .flatMap((part) => {
      const [first = "", ...rest] = part.split("\n");
      const heading = first.replace(/[`*#[\]]|\(.*?\)/g, "").trim();
      const paragraphs = rest
        .join("\n")
        .split(/\n\s*\n/)
        .map((each) => each.trim());
      const long = paragraphs.filter((each) => each.length >= 80 && each.length <= 4_000);
      return heading.split(" ").length >= 2 && long.length >= 2 ? [{ heading, paragraphs: long }] : [];
    });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));

import { DatabaseSync } from "../../src/db/sqlite/driver.ts";
import { MemoryIndex } from "../../src/knowledge/memory/index/memory-index.ts";
import type { EdgeRecord, NodeRecord } from "../../src/knowledge/memory/model.ts";
import type { Asked, Question } from "../../src/knowledge/memory/recall/question.ts";
import { rank } from "../../src/knowledge/memory/recall/rank.ts";
import { View } from "../../src/knowledge/memory/recall/view.ts";

/** What benchmarks of recall compare: the index and SQLite's FTS5, on the same texts, each asked for ten. */

export const LIMIT = 10;

/** How recall is asked. */
export const WAYS = [
  { name: "recall, words alone", expandHops: 0, ppr: false },
  { name: "recall", expandHops: 1, ppr: false },
  { name: "recall, PPR", expandHops: 1, ppr: true },
] as const;
export type Way = { expandHops: number; ppr: boolean };

const PAGE_VERSIONS = 5_000;

export function indexOf(nodes: readonly NodeRecord[], edges: readonly EdgeRecord[]): MemoryIndex {
  const index = new MemoryIndex();
  for (let at = 0; at < Math.max(nodes.length, edges.length); at += PAGE_VERSIONS) {
    const page = <R>(records: readonly R[]) =>
      records.slice(at, at + PAGE_VERSIONS).map((record) => ({ state: "current" as const, record }));
    index.apply({ seq: index.seq + 1, nodes: page(nodes), edges: page(edges) });
  }
  return index;
}

/** The ids of the first ten memories. */
export function recalled(index: MemoryIndex, query: string, { expandHops, ppr }: Way): string[] {
  const question: Question = { ...EVERYTHING, query };
  const asked: Asked = { question, rights: { own: "user:ann" }, nowUs: NOW_US };
  const { memories } = rank(new View(index, asked), { query, expandHops }, { ppr, classDecay: false });
  return memories.slice(0, LIMIT).map(({ node }) => index.nodes.versions.ids.idOf(node));
}

const NOW_US = 1_767_312_000_000_000;

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
export class Fts {
  readonly #db = new DatabaseSync(":memory:");
  readonly #ids: string[] = [];

  constructor(nodes: readonly NodeRecord[]) {
    this.#db.exec("CREATE VIRTUAL TABLE t USING fts5(text, content='', tokenize='porter unicode61'); BEGIN");
    const insert = this.#db.prepare("INSERT INTO t (rowid, text) VALUES (?, ?)");
    for (const [i, { id, name, content }] of nodes.entries()) {
      insert.run(i + 1, `${name ?? ""} ${content}`);
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

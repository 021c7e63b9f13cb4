import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startLocalCluster } from "../../test/cluster/local-cluster.ts";
import { readArguments } from "../support/arguments.ts";
import { quantile } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";

/**
 * Question: how long after a row is acknowledged does a live tail show it, and how fast does a tail read what was there
 * before?
 *
 *     node bench/query/tail.ts [--rounds 200] [--tails 64] [--past 200000] [--no-cluster]
 *
 * The systems are one process on SQLite, and a cluster (ingest and query nodes of their own, PostgreSQL, S3). Of each: one
 * row at a time while nobody else is there; one at a time with `--tails` tails of eight filters, while other rows come all
 * the time. Every tail must show every row of its filter once. Time counts from the acknowledgement; a row that is seen
 * before it has arrived counts as 0. Then one tail reads `--past` rows from the beginning.
 */
const OPTIONS = {
  rounds: { type: "string", default: "200" },
  tails: { type: "string", default: "64" },
  past: { type: "string", default: "200000" },
  "no-cluster": { type: "boolean", default: false },
} as const;

type Plan = { rounds: number; tails: number; past: number };
type System = { name: string; ingestUrl: string; queryUrl: string };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const plan = { rounds: options.count("rounds"), tails: options.count("tails"), past: options.count("past") };
  console.log(machine());
  const server = await startBenchServer();
  try {
    await measure({ name: "one process, SQLite", ingestUrl: server.url, queryUrl: server.url }, plan);
  } finally {
    await server.stop();
  }
  if (!options.has("no-cluster")) await measureCluster(plan);
}

async function measureCluster(plan: Plan): Promise<void> {
  const counts = { edge: 0, query: 1, ingest: 1, committer: 0, compaction: 0, worker: 0 };
  const cluster = await startLocalCluster({ counts });
  try {
    const urlOf = (name: string): string => cluster.urls.get(name) ?? "";
    await measure({ name: "cluster", ingestUrl: urlOf("ingest-1"), queryUrl: urlOf("query-1") }, plan);
  } finally {
    await cluster.giveUp();
  }
}

async function measure(system: System, { rounds, tails, past }: Plan): Promise<void> {
  const alone = await latencies(system, "alone", { rounds, tails: 1, isBusy: false });
  const crowded = await latencies(system, "crowded", { rounds, tails, isBusy: true });
  printTable(
    [system.name, "p50 ms", "p90 ms", "p99 ms", "most ms"],
    [rowOf("1 tail", alone), rowOf(`${tails} tails, others write`, crowded)],
  );
  const seconds = await readPast(system, past);
  console.log(
    `${system.name}: ${past} rows of the past in ${shown(seconds)} s, ${shown(past / seconds / 1_000)} thousand a second\n`,
  );
}

function rowOf(what: string, times: Float64Array): string[] {
  return [what, ...[0.5, 0.9, 0.99, 1].map((q) => shown(quantile(times, q)))];
}

/** Milliseconds from the acknowledgement of each row until the last of its tails has it; ascending. */
async function latencies(
  { ingestUrl, queryUrl }: System,
  table: string,
  { rounds, tails, isBusy }: { rounds: number; tails: number; isBusy: boolean },
): Promise<Float64Array> {
  await put(ingestUrl, table, [{ id: "first" }]);
  const readers = await Promise.all(
    Array.from({ length: tails }, (_, i) => Reader.open(queryUrl, table, `id <> 'x${i % 8}'`)),
  );
  const others = isBusy ? writeAlways(ingestUrl, table) : undefined;
  const taken = new Float64Array(rounds);
  for (let round = 0; round < rounds; round++) {
    const id = `row-${round}`;
    const seen = Promise.all(readers.map((reader) => reader.time(id)));
    await put(ingestUrl, table, [{ id }]);
    const acknowledgedMs = performance.now();
    taken[round] = Math.max(0, Math.max(...(await seen)) - acknowledgedMs);
    await delay(20);
  }
  const written = await others?.stop();
  for (const reader of readers) {
    reader.leave();
    const isWhole = rounds === [...reader.seen.keys()].filter((id) => id.startsWith("row-")).length;
    if (!isWhole || [...reader.seen.values()].some((count) => count > 1))
      throw new Error("a row is missing, or came twice");
  }
  if (written !== undefined) console.log(`${written} rows came beside those that are measured`);
  return taken.sort();
}

function writeAlways(url: string, table: string): { stop: () => Promise<number> } {
  const state = { isStopped: false, written: 0 };
  const done = (async () => {
    while (!state.isStopped) {
      await put(
        url,
        table,
        Array.from({ length: 20 }, (_, i) => ({ id: `other-${state.written + i}` })),
      );
      state.written += 20;
      await delay(50);
    }
  })();
  return {
    stop: async () => {
      state.isStopped = true;
      await done;
      return state.written;
    },
  };
}

async function readPast({ ingestUrl, queryUrl }: System, rows: number): Promise<number> {
  for (let from = 0; from < rows; from += 20_000) {
    const count = Math.min(20_000, rows - from);
    await put(
      ingestUrl,
      "past",
      Array.from({ length: count }, (_, i) => ({ id: `past-${from + i}`, text: "x".repeat(200) })),
    );
  }
  const startedMs = performance.now();
  const reader = await Reader.open(queryUrl, "past", undefined, "0");
  await reader.time(`past-${rows - 1}`);
  const seconds = (performance.now() - startedMs) / 1_000;
  reader.leave();
  if (reader.seen.size !== rows) throw new Error(`the tail has ${reader.seen.size} of ${rows} rows`);
  return seconds;
}

async function put(url: string, table: string, rows: readonly object[]): Promise<void> {
  const body = rows.map((row) => JSON.stringify(row)).join("\n");
  const headers = { "Content-Type": "application/x-ndjson", "X-Table": table };
  const answer = await fetch(`${url}/v1/ingest`, { method: "POST", headers, body });
  if (answer.status !== 200) throw new Error(`ingest: ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
}

/** One client of a tail; says when it had a row, by its id. */
class Reader {
  /** How often each row came. */
  readonly seen = new Map<string, number>();
  readonly #waiting = new Map<string, (atMs: number) => void>();
  readonly #leaving = new AbortController();

  static async open(url: string, table: string, filter: string | undefined, from = "now"): Promise<Reader> {
    const reader = new Reader();
    const query = new URLSearchParams({ table, from, ...(filter !== undefined && { filter }) });
    const answer = await fetch(`${url}/v1/tail?${query.toString()}`, { signal: reader.#leaving.signal });
    if (answer.status !== 200) throw new Error(`tail: ${answer.status} ${await answer.text()}`);
    void reader.#read(answer);
    return reader;
  }

  /** The time, of `performance.now`, at which the row comes. */
  time(id: string): Promise<number> {
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  leave(): void {
    this.#leaving.abort();
  }

  async #read(answer: Response): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const piece of answer.body ?? []) {
        const text = rest + decoder.decode(piece as Uint8Array, { stream: true });
        const end = text.lastIndexOf("\n");
        rest = text.slice(end + 1);
        for (const [, id = ""] of text.slice(0, end + 1).matchAll(/^data: .*"id":"([^"]+)"/gm)) this.#saw(id);
      }
    } catch (error) {
      if (!this.#leaving.signal.aborted) throw error;
    }
  }

  #saw(id: string): void {
    this.seen.set(id, (this.seen.get(id) ?? 0) + 1);
    this.#waiting.get(id)?.(performance.now());
    this.#waiting.delete(id);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));

import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { quantile } from "../../src/capacity/quantile.ts";
import { startLocalCluster } from "../../test/cluster/local-cluster.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { startBenchServer } from "../support/server.ts";

/** Every tail must show every row of its filter once. */
export const benchmark = defineBenchmark({
  name: "query/tail",
  question:
    "How long after a row is acknowledged does a live tail show it, alone and in a crowd, in one process and in a cluster, " +
    "and how fast does it read what was there before?",
  notMeasured:
    "Networks, and servers of which others ask queries. Time counts from the acknowledgement until the last tail has the " +
    "row; a row that is seen before its acknowledgement has arrived counts as 0.",
  options: z.strictObject({
    rows: z.coerce.number().int().positive().default(100).describe("that are waited for one by one, in one round"),
    tails: z.coerce.number().int().positive().default(64).describe("of eight filters, in the crowd"),
    past: z.coerce.number().int().positive().default(200_000).describe("rows that were there before"),
    cluster: z.stringbool().default(true).describe("false leaves it out; it needs PostgreSQL and an S3 server"),
  }),
  measures: {
    alone: { unit: "ms", better: "less", doc: "until the only tail has a row: median" },
    aloneP99: { unit: "ms", better: "less", doc: "until the only tail has a row: but for 1 %" },
    crowd: { unit: "ms", better: "less", doc: "until all tails have a row, while others write: median" },
    crowdP99: { unit: "ms", better: "less", doc: "until all tails have a row, while others write: but for 1 %" },
    crowdMost: { unit: "ms", better: "less", doc: "until all tails have a row, while others write: the longest" },
    past: { unit: "rows/s", better: "more", doc: "that were there before, for one tail" },
  },
  rounds: 3,
  open: async ({ cluster, ...plan }) => {
    const ends: (() => Promise<void>)[] = [];
    const close = async () => {
      for (const end of ends.toReversed()) await end();
    };
    try {
      const server = await startBenchServer();
      ends.push(() => server.stop());
      const alone = await sideOf({ name: "one process", ingestUrl: server.url, queryUrl: server.url }, plan);
      const sides: Side[] = [{ ...alone, processes: () => ({ server: server.pid }) }];
      if (cluster) sides.push(await clusterSide(plan, ends));
      return { sides, close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

type Plan = { rows: number; tails: number; past: number };
type System = { name: string; ingestUrl: string; queryUrl: string };

/** Ingest and query nodes of their own, PostgreSQL, S3. */
async function clusterSide(plan: Plan, ends: (() => Promise<void>)[]): Promise<Side> {
  const counts = { edge: 0, query: 1, ingest: 1, committer: 0, compaction: 0, worker: 0 };
  const cluster = await startLocalCluster({ counts });
  ends.push(() => cluster.giveUp());
  const urlOf = (name: string): string => cluster.urls.get(name) ?? "";
  return await sideOf({ name: "cluster", ingestUrl: urlOf("ingest-1"), queryUrl: urlOf("query-1") }, plan);
}

/** Each round has tables of its own, but for the past. */
async function sideOf(system: System, { rows, tails, past }: Plan): Promise<Side> {
  await writePast(system.ingestUrl, past);
  let done = 0;
  const round = async () => {
    const place = done++;
    const alone = await latencies(system, `alone_${place}`, { rows, tails: 1, isBusy: false });
    const crowd = await latencies(system, `crowd_${place}`, { rows, tails, isBusy: true });
    return {
      alone: quantile(alone, 0.5),
      aloneP99: quantile(alone, 0.99),
      crowd: quantile(crowd, 0.5),
      crowdP99: quantile(crowd, 0.99),
      crowdMost: quantile(crowd, 1),
      past: past / (await readPast(system.queryUrl, past)),
    };
  };
  return { name: system.name, round };
}

/** Milliseconds from the acknowledgement of each row until the last of its tails has it; ascending. */
async function latencies(
  { ingestUrl, queryUrl }: System,
  table: string,
  { rows, tails, isBusy }: { rows: number; tails: number; isBusy: boolean },
): Promise<Float64Array> {
  await put(ingestUrl, table, [{ id: "first" }]);
  const readers = await Promise.all(
    Array.from({ length: tails }, (_, i) => Reader.open(queryUrl, table, `id <> 'x${i % 8}'`)),
  );
  const others = isBusy ? writeAlways(ingestUrl, table) : undefined;
  const taken = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    const id = `row-${row}`;
    const seen = Promise.all(readers.map((reader) => reader.time(id)));
    await put(ingestUrl, table, [{ id }]);
    const acknowledgedMs = performance.now();
    taken[row] = Math.max(0, Math.max(...(await seen)) - acknowledgedMs);
    await delay(20);
  }
  await others?.stop();
  for (const reader of readers) {
    reader.leave();
    const isWhole = rows === [...reader.seen.keys()].filter((id) => id.startsWith("row-")).length;
    if (!isWhole || [...reader.seen.values()].some((count) => count > 1))
      throw new Error("a row is missing, or came twice");
  }
  return taken.sort();
}

function writeAlways(url: string, table: string): { stop: () => Promise<void> } {
  const state = { isStopped: false, written: 0 };
  const done = (async () => {
    while (!state.isStopped) {
      const from = state.written;
      await put(
        url,
        table,
        Array.from({ length: 20 }, (_, i) => ({ id: `other-${from + i}` })),
      );
      state.written += 20;
      await delay(50);
    }
  })();
  return {
    stop: async () => {
      state.isStopped = true;
      await done;
    },
  };
}

async function writePast(url: string, rows: number): Promise<void> {
  for (let from = 0; from < rows; from += 20_000) {
    const count = Math.min(20_000, rows - from);
    await put(
      url,
      "past",
      Array.from({ length: count }, (_, i) => ({ id: `past-${from + i}`, text: "x".repeat(200) })),
    );
  }
}

/** Seconds. */
async function readPast(url: string, rows: number): Promise<number> {
  const startedMs = performance.now();
  const reader = await Reader.open(url, "past", undefined, "0");
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

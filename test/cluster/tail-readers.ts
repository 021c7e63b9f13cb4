import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { TailClient, type TailEvent } from "../api/tail.test-kit.ts";
import { ingest, ndjson, rowsOf } from "../support/client.ts";

/** Readers of live tails that come again whatever happens, and writers that retry, for tests that break servers. */

/** A generator of numbers in [0, 1) that a seed repeats (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export type ReaderOptions = {
  table: string;
  /** Where to go next. */
  url: () => string;
  random: () => number;
  filter?: string;
};

/** Reads a table from its beginning, over connections that it breaks by itself now and then. */
export class TailReader {
  readonly rows: TailEvent[] = [];
  readonly filter: string | undefined;
  connections = 0;
  readonly #options: ReaderOptions;
  #lastId: string | undefined;
  #isStopped = false;
  #client: TailClient | undefined;
  readonly #done: Promise<void>;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.filter = options.filter;
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#client?.leave();
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        await this.#connect();
      } catch (error) {
        // A refusal that is for good must not look like a reader that waits.
        if (/^4(00|01|03|04|10) /.test((error as Error).message)) throw error;
      }
      await delay(20 + 200 * this.#options.random());
    }
  }

  async #connect(): Promise<void> {
    const { table, url, filter, random } = this.#options;
    const client = await TailClient.open(
      url(),
      table,
      {
        query: { from: "0", ...(filter && { filter }) },
        headers: this.#lastId === undefined ? {} : { "Last-Event-ID": this.#lastId },
      },
      (event) => {
        if (event.event === "message") this.rows.push(event);
      },
    );
    this.#client = client;
    this.connections++;
    const untilMs = performance.now() + 200 + 4_000 * random();
    while (!client.isOver && !this.#isStopped && performance.now() < untilMs) await delay(20);
    client.leave();
    // The last bytes that came are read, and count.
    while (!client.isOver) await delay(5);
    if (client.lastId !== "") this.#lastId = client.lastId;
  }
}

/** Sends rows `{w, n}` until it is stopped; a request that fails is sent again under its key until it is acknowledged. */
export class TailWriter {
  readonly acknowledged: string[] = [];
  readonly #options: { name: string; table: string; url: () => string; random: () => number };
  #isStopped = false;
  readonly #done: Promise<void>;

  constructor(options: { name: string; table: string; url: () => string; random: () => number }) {
    this.#options = options;
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
  }

  async #run(): Promise<void> {
    const { name, random } = this.#options;
    for (let n = 0; !this.#isStopped;) {
      const count = 1 + Math.floor(5 * random());
      const ids = Array.from({ length: count }, (_, i) => `${name}-${n + i}`);
      n += count;
      await this.#send(ids);
      this.acknowledged.push(...ids);
      await delay(100 * random());
    }
  }

  async #send(ids: readonly string[]): Promise<void> {
    const { table, url } = this.#options;
    const body = ndjson(ids.map((id) => ({ id })));
    for (;;) {
      try {
        const { status } = await ingest(url(), table, body, { "X-Idempotency-Key": ids[0] ?? "" }, 10_000);
        if (status === 200) return;
      } catch {
        // Sent again below.
      }
      await delay(100);
    }
  }
}

/** A filter that is true of the ids that `isOdd` is true of. */
export const ODD = "length(id) % 2 = 1";
const isOdd = (id: string): boolean => id.length % 2 === 1;

/** Waits until the readers have all rows, and checks that each has every row once, all in one order. */
export async function checkReaders(readers: readonly TailReader[], acknowledged: readonly string[]): Promise<void> {
  const wanted = readers.map(({ filter }) => (filter === ODD ? acknowledged.filter(isOdd) : acknowledged));
  const haveAll = () => readers.every(({ rows }, i) => rows.length >= (wanted[i]?.length ?? 0));
  for (const untilMs = performance.now() + 60_000; !haveAll() && performance.now() < untilMs;) await delay(50);
  // One that came twice would come a little later.
  await delay(1_000);
  await Promise.all(readers.map((reader) => reader.stop()));
  const found = readers.map(({ rows }, i) => compare(wanted[i] ?? [], rows));
  expect(found).toEqual(readers.map(() => ({ lost: [], twice: [] })));
  expect(readers.map(({ rows }) => isInOrder(rows))).toEqual(readers.map(() => true));
  const [first = [], ...others] = readers.map(({ rows }) => rows.map(({ id, data }) => `${id} ${String(data["id"])}`));
  for (const [i, other] of others.entries()) {
    const parts = new Set(other);
    expect(other).toEqual(readers[i + 1]?.filter === undefined ? first : first.filter((row) => parts.has(row)));
  }
}

/** Whether a merge has replaced extents that commits brought. */
export async function hasMerged(url: string): Promise<boolean> {
  const [merged] = await rowsOf(url, "SELECT count(*) AS n FROM system.extents WHERE format = 'parquet'");
  return Number(merged?.["n"]) > 0;
}

/** Of ids that were acknowledged: those that the reader never had, and those that it had more than once. */
function compare(acknowledged: readonly string[], rows: readonly TailEvent[]): { lost: string[]; twice: string[] } {
  const counts = new Map<string, number>();
  for (const { data } of rows) {
    const id = String(data["id"]);
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return {
    lost: acknowledged.filter((id) => !counts.has(id)),
    twice: [...counts].filter(([, count]) => count > 1).map(([id]) => id),
  };
}

/** Whether ids only ever increase. */
function isInOrder(rows: readonly TailEvent[]): boolean {
  const places = rows.map(({ id }) => (id ?? "").split(".").map(Number));
  return places.every(([snapshot = 0, row = 0], i) => {
    const [before = -1, rowBefore = 0] = places[i - 1] ?? [];
    return snapshot > before || (snapshot === before && row > rowBefore);
  });
}

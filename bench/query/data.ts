import { existsSync, readFileSync } from "node:fs";
import { mkdir, open, rename, writeFile, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { seededRandom, type Random } from "../../src/core/random.ts";
import type { ColumnSpec } from "../../src/format/types.ts";
import { below, pick, SYNTHETIC } from "../support/row-makers.ts";
import { columnsOf, SHAPES } from "../support/shapes.ts";

/**
 * The data of the query benchmarks: `events`, the rows of `logs` with nested `props` and, in one row of `RARE_EVERY`, a
 * word that no other row has; `spans`, one row for every tenth trace; `services`, one row per service. Times are unique
 * and ascend, so that orders by time are total.
 */
export type QueryTable = { name: string; columns: readonly ColumnSpec[] };

export const TABLES = {
  events: { name: "events", columns: [...SHAPES.logs.columns, { name: "props", type: { kind: "dynamic" } }] },
  spans: {
    name: "spans",
    columns: columnsOf({ at: "timestamp", trace_id: "string", kind: "string", span_ms: "real" }),
  },
  services: {
    name: "services",
    columns: columnsOf({ at: "timestamp", service: "string", team: "string", tier: "int" }),
  },
} as const satisfies Record<string, QueryTable>;

/** What the queries need to know about the data. */
export type DataFacts = {
  rows: number;
  /** The trace of the row in the middle. */
  traceId: string;
  /** A hundredth of the time that the data covers, from the middle on. */
  window: { from: string; to: string };
};

/** The data as files of NDJSON, one per table. */
export type QueryData = { facts: DataFacts; sizeBytes: number; pathOf(table: string): string };

export const RARE_WORD = "deadlock";
const RARE_EVERY = 100_000;
const RARE_FIRST = 4_321;
const SPAN_EVERY = 10;
const WINDOW_PARTS = 100;

const REGIONS = ["eu-west", "eu-north", "us-east", "us-west", "ap-south"];
const PLANS = ["free", "free", "free", "team", "enterprise"];
const SPAN_KINDS = ["server", "client", "producer", "consumer"];
const SERVICE_ROWS = ["checkout", "cart", "search", "auth", "payments", "inventory", "shipping", "frontend"].map(
  (service, i) => ({
    at: "2026-01-01T00:00:00.000Z",
    service,
    team: ["shop", "platform", "money"][i % 3] ?? "",
    tier: 1 + (i % 2),
  }),
);

const FACTS = "facts.json";

/** Makes the data in `folder`, or takes what an earlier run with as many rows left there. */
export async function queryData(folder: string, rows: number): Promise<QueryData> {
  await mkdir(folder, { recursive: true });
  const pathOf = (table: string) => join(folder, `${table}.ndjson`);
  const kept = keptFacts(folder);
  const made = kept?.facts.rows === rows ? kept : await makeData(folder, pathOf, rows);
  return { ...made, pathOf };
}

type Made = { facts: DataFacts; sizeBytes: number };

function keptFacts(folder: string): Made | undefined {
  const path = join(folder, FACTS);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Made) : undefined;
}

async function makeData(folder: string, pathOf: (table: string) => string, rows: number): Promise<Made> {
  const random = seededRandom(1);
  const middle = rows >> 1;
  const windowEnd = Math.min(rows - 1, middle + Math.max(1, Math.floor(rows / WINDOW_PARTS)));
  const facts: DataFacts = { rows, traceId: "", window: { from: "", to: "" } };
  const events = await Sink.open(pathOf("events"));
  const spans = await Sink.open(pathOf("spans"));
  for (let i = 0; i < rows; i++) {
    const event = eventOf(random, i);
    await events.add(event);
    if (i % SPAN_EVERY === 0) await spans.add(spanOf(random, event));
    if (i === middle) {
      facts.traceId = event.trace_id;
      facts.window.from = event.at;
    }
    if (i === windowEnd) facts.window.to = event.at;
  }
  const sizeBytes = await events.close();
  await spans.close();
  await writeFile(pathOf("services"), SERVICE_ROWS.map((row) => `${JSON.stringify(row)}\n`).join(""));
  // The facts say that the rest is complete.
  const made = { facts, sizeBytes };
  await writeFile(join(folder, `${FACTS}.new`), JSON.stringify(made));
  await rename(join(folder, `${FACTS}.new`), join(folder, FACTS));
  return made;
}

function eventOf(random: Random, index: number) {
  const row = SYNTHETIC.logs(random, index);
  if (index % RARE_EVERY === RARE_FIRST % RARE_EVERY) row.body += ` ${RARE_WORD}`;
  const props = {
    user: { id: below(random, 50_000), plan: pick(random, PLANS) },
    region: pick(random, REGIONS),
    cart: { items: below(random, 12), total: below(random, 50_000) / 100 },
    retries: below(random, 4),
  };
  return { ...row, props };
}

function spanOf(random: Random, event: ReturnType<typeof eventOf>) {
  return {
    at: event.at,
    trace_id: event.trace_id,
    kind: pick(random, SPAN_KINDS),
    span_ms: below(random, 100_000) / 100,
  };
}

/** Rows into a file, many at a time. */
class Sink {
  readonly #handle: FileHandle;
  #text = "";
  #sizeBytes = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  static async open(path: string): Promise<Sink> {
    return new Sink(await open(path, "w"));
  }

  async add(row: Record<string, unknown>): Promise<void> {
    this.#text += `${JSON.stringify(row)}\n`;
    if (this.#text.length >= MAX_TEXT) await this.#flush();
  }

  /** Resolves to the size of the file. */
  async close(): Promise<number> {
    await this.#flush();
    await this.#handle.close();
    return this.#sizeBytes;
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#text);
    await this.#handle.writeFile(bytes);
    this.#sizeBytes += bytes.length;
    this.#text = "";
  }
}

const MAX_TEXT = 8 * 1024 * 1024;

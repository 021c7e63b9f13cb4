import { setTimeout as delay } from "node:timers/promises";
import { seededRandom, type Random } from "../../src/core/random.ts";
import { ingest, ndjson, query, type Answer, type ErrorBody } from "../support/client.ts";

/**
 * Clients of a cluster whose parts come and go. They keep books of what they were told, and readers compare every answer
 * with these while it all happens; `chaos-check.ts` does when it is over.
 */

/** One request, or one try of a request without a key. */
export type Sent = {
  table: string;
  /** The label of its rows. */
  label: string;
  rows: number;
  /** A column of its own making, which says `label/n` in every row. */
  column?: string;
  acknowledged: boolean;
};

/** Rows. */
type Told = { acknowledged: number; begun: number };

export type LoadOptions = {
  edges: readonly string[];
  seed: number;
  /** What is acknowledged is visible at once. */
  isSync: boolean;
};

type Client = {
  name: string;
  /** Requests have from one row to this many; every order of magnitude is as likely. */
  maxRows: number;
  hasKeys: boolean;
  /** Adds columns to its tables as it goes, which others add at the same time. */
  evolves: boolean;
  /** Waits between two requests, on average half of it. */
  thinkMs: number;
  /** Goes on to a new table from time to time, as others do. */
  wanders: boolean;
};

const USUAL: Client = { name: "", maxRows: 60, hasKeys: true, evolves: false, wanders: false, thinkMs: 20 };
const CLIENTS: readonly Client[] = [
  { ...USUAL, name: "small-1" },
  { ...USUAL, name: "small-2" },
  { ...USUAL, name: "evolving-1", evolves: true },
  { ...USUAL, name: "evolving-2", evolves: true },
  { ...USUAL, name: "wandering-1", wanders: true },
  { ...USUAL, name: "wandering-2", wanders: true },
  // Beyond the megabyte that an edge keeps to send again.
  { ...USUAL, name: "large", maxRows: 20_000, thinkMs: 1_000 },
  { ...USUAL, name: "keyless", hasKeys: false },
];
/** The tables that readers read. */
const TABLES = ["a", "b"];
const REQUESTS_PER_COLUMN = 25;
const REQUESTS_PER_TABLE = 40;
const REQUEST_TIMEOUT_MS = 25_000;
/** Tries that a client gives up soon, and sends again: many of them are stored, and their answers are lost. */
const IMPATIENT_SHARE = 0.1;
const IMPATIENT_MS = 150;
const RETRY_AFTER_MS = 50;
const READ_EVERY_MS = 400;
const SHOWN_REASON_CHARS = 80;
/** After the last fault everything must be acknowledged within this. */
const SETTLE_MS = 120_000;

export class ChaosLoad {
  readonly sent = new Map<string, Sent>();
  readonly problems: string[] = [];
  /** Answers other than success, by status, code and what they say. */
  readonly refusals: Record<string, number> = {};
  retries = 0;
  queries = 0;
  readonly #options: LoadOptions;
  readonly #told = new Map<string, Told>();
  #running: Promise<unknown> = Promise.resolve();
  #stopping = false;
  readonly #hopeless = new AbortController();

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  start(): void {
    const { seed } = this.#options;
    const writers = CLIENTS.map((client, i) => this.#keepSending(client, seededRandom(seed + i + 1)));
    const readers = TABLES.map((table, i) => this.#keepReading(table, seededRandom(seed - i - 1)));
    this.#running = Promise.all([...writers, ...readers]);
  }

  /** Resolves when every client has its last acknowledgement, or it is certain that one never comes. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const timer = setTimeout(() => this.#hopeless.abort(), SETTLE_MS);
    await this.#running;
    clearTimeout(timer);
  }

  /** Rows of a table that must be there, and that may be. */
  rowsOf(table: string): Readonly<Told> {
    return this.#told.get(table) ?? { acknowledged: 0, begun: 0 };
  }

  #begun(request: Omit<Sent, "acknowledged">): Sent {
    const known = this.sent.get(request.label);
    if (known !== undefined) return known;
    const sent = { ...request, acknowledged: false };
    this.sent.set(sent.label, sent);
    const { acknowledged, begun } = this.rowsOf(sent.table);
    this.#told.set(sent.table, { acknowledged, begun: begun + sent.rows });
    return sent;
  }

  #acknowledged(sent: Sent): void {
    sent.acknowledged = true;
    const { acknowledged, begun } = this.rowsOf(sent.table);
    this.#told.set(sent.table, { acknowledged: acknowledged + sent.rows, begun });
  }

  async #keepSending(client: Client, random: Random): Promise<void> {
    let lastSnapshot = 0;
    for (let n = 0; !this.#stopping; n++) {
      const table = client.wanders ? `t${Math.floor(n / REQUESTS_PER_TABLE)}` : oneOf(TABLES, random);
      const column = client.evolves ? `extra_${Math.floor(n / REQUESTS_PER_COLUMN)}` : undefined;
      const request = { table, label: `${client.name}-${n}`, rows: Math.ceil(client.maxRows ** random.next()) };
      const snapshot = await this.#send(client, { ...request, ...(column !== undefined && { column }) }, random);
      // One request after the other: what is told later came later.
      if (snapshot !== undefined && snapshot <= lastSnapshot) {
        this.problems.push(`${request.label}: snapshot ${snapshot} after ${lastSnapshot}`);
      }
      lastSnapshot = snapshot ?? lastSnapshot;
      await delay(random.next() * client.thinkMs);
    }
  }

  /** Resolves, once it is acknowledged, to the snapshot that the acknowledgement names. */
  async #send(client: Client, request: Omit<Sent, "acknowledged">, random: Random): Promise<number | undefined> {
    for (let attempt = 1; ; attempt++) {
      // Without a key each try is a request of its own, of which it may never be known whether it was stored.
      const sent = this.#begun(client.hasKeys ? request : { ...request, label: `${request.label}/${attempt}` });
      const answer = await this.#tryOnce(client, sent, random);
      if (answer?.status === 200) {
        this.#acknowledged(sent);
        const { rows_ingested, snapshot_id } = answer.json;
        if (rows_ingested !== sent.rows) {
          this.problems.push(`${sent.label}: acknowledged ${rows_ingested} of ${sent.rows} rows`);
        }
        return snapshot_id === "" ? undefined : Number(snapshot_id);
      }
      if (this.#hopeless.signal.aborted) {
        this.problems.push(`${sent.label}: not acknowledged within ${SETTLE_MS} ms after the last fault`);
        return undefined;
      }
      this.retries++;
      await delay(RETRY_AFTER_MS * (1 + random.next()));
    }
  }

  async #tryOnce({ hasKeys }: Client, sent: Sent, random: Random) {
    const headers = hasKeys ? { "X-Idempotency-Key": sent.label } : {};
    const edge = oneOf(this.#options.edges, random);
    const isImpatient = hasKeys && random.next() < IMPATIENT_SHARE;
    const timeoutMs = isImpatient ? Math.ceil(random.next() * IMPATIENT_MS) : REQUEST_TIMEOUT_MS;
    try {
      const answer = await ingest(edge, sent.table, bodyOf(sent), headers, timeoutMs);
      this.#book(`ingest of ${sent.label}`, answer);
      return answer;
    } catch {
      // The edge is down, silent, or cut the connection. That is why clients send again.
      this.#count("ingest: no answer");
      return undefined;
    }
  }

  /** No answer may miss what was acknowledged before it was asked for, or what an earlier answer had. */
  async #keepReading(table: string, random: Random): Promise<void> {
    const sql = `SELECT count(*) AS rows, count(DISTINCT label || '/' || n) AS ids FROM ${table}`;
    for (let seen = 0; !this.#stopping; await delay(random.next() * READ_EVERY_MS)) {
      const { acknowledged } = this.rowsOf(table);
      const least = this.#options.isSync ? Math.max(seen, acknowledged) : seen;
      const answer = await this.#ask(sql, least > 0, random);
      if (answer?.status !== 200) continue;
      this.queries++;
      const [rows, ids] = [Number(answer.rows[0]?.["rows"]), Number(answer.rows[0]?.["ids"])];
      const { begun } = this.rowsOf(table);
      if (!(rows >= least && rows <= begun)) {
        this.problems.push(`a query of ${table} saw ${rows} rows, which were ${least} to ${begun}`);
      }
      if (ids !== rows) this.problems.push(`a query of ${table} saw ${rows} rows, of which ${ids} differ`);
      seen = rows;
    }
  }

  async #ask(sql: string, hasRows: boolean, random: Random) {
    try {
      const answer = await query(oneOf(this.#options.edges, random), sql, {}, REQUEST_TIMEOUT_MS);
      // Before the first row there is no such table, or none with such columns.
      if (hasRows || answer.status >= 429) this.#book("query", answer);
      return answer;
    } catch {
      this.#count("query: no answer");
      return undefined;
    }
  }

  /** A fault is a reason to say "later", never "you are wrong". */
  #book(what: string, { status, json, text }: Answer<ErrorBody>): void {
    if (status === 200) return;
    const code = json.error?.code ?? "no code";
    const reason = (json.error?.message ?? text).replaceAll(/\d+/g, "#").slice(0, SHOWN_REASON_CHARS);
    this.#count(`${what.split(" ")[0]}: ${status} ${code}, ${reason}`);
    if (!LATER.has(code)) this.problems.push(`${what}: ${status} ${text}`);
  }

  #count(what: string): void {
    this.refusals[what] = (this.refusals[what] ?? 0) + 1;
  }
}

/** Codes that may answer a request that is right. */
const LATER = new Set(["unavailable", "too_many_requests", "ingest_failed", "snapshot_expired", "request_timeout"]);

function bodyOf({ label, rows, column }: Sent): string {
  return ndjson(
    Array.from({ length: rows }, (_, n) => ({
      label,
      n: String(n),
      ...(column !== undefined && { [column]: `${label}/${n}` }),
      body: "x".repeat(100),
    })),
  );
}

function oneOf<T>(values: readonly T[], random: Random): T {
  const value = values[Math.floor(random.next() * values.length)];
  if (value === undefined) throw new Error("there is nothing to choose from");
  return value;
}

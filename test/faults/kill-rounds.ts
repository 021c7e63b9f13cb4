import { join } from "node:path";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import type { Catalog } from "../../src/catalog/catalog.ts";
import { openTestCatalog } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { openSqliteCatalog } from "../../src/catalog/sqlite/sqlite.ts";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { seededRandom, systemRandom } from "../../src/core/random.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { openFilesystemStore } from "../../src/io/objectstore/filesystem.ts";
import type { ObjectStore } from "../../src/io/objectstore/objectstore.ts";
import { ingest, ndjson, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { delay, freePort } from "../../src/core/waiting.test-kit.ts";

/**
 * `kill -9` at random moments under a steady load of keyed requests whose clients retry until they are acknowledged;
 * then a restart and a count. What must hold: every acknowledged row is there once; a request that was never
 * acknowledged is there whole or not at all, and once; the snapshots that clients were told of are readable and each
 * shows no fewer rows than the one before; the catalog's invariants hold; every live extent has exactly its bytes.
 *
 * Rows have fields of numbers whose columns take their types from the data, new ones all the time, and each is widened
 * once a fraction comes: whichever type a kill leaves, all values are there.
 */
export type KillReport = {
  kills: number;
  requests: number;
  retries: number;
  rows: number;
  snapshots: number;
  problems: string[];
};

type Sent = { key: string; rows: number; acknowledged: boolean; snapshot?: number } & Measures;
/** The field of numbers that its rows have, and what these add up to. */
type Measures = { field: string; sum: number };
type Run = { url: string; stopping: boolean; sent: Map<string, Sent>; retries: number };

const CLIENTS = 8;
/** Of one client. */
const REQUESTS_PER_FIELD = 12;
const TABLES = ["a", "b"];
const MAX_SNAPSHOTS_READ = 60;

export type KillOptions = {
  kills: number;
  seed: number;
  /** Requests have from one row to this many; every order of magnitude is as likely. */
  maxRows?: number;
  /** How long a server lives once it listens: at least, and at most that much longer. */
  lifeMs?: { min: number; spread: number };
  /** A catalog of PostgreSQL; that of the home when there is none. */
  catalogUrl?: string;
};

/** Small requests and short lives: as many kills in the middle of a commit as fit into the time. */
const SMALL = { maxRows: 60, lifeMs: { min: 5, spread: 700 } };
/** Requests of up to 15 MB, cut and sealed by all threads, and lives long enough for many of them. */
export const SOAK = { maxRows: 100_000, lifeMs: { min: 500, spread: 5_000 } };

export async function killRounds(given: KillOptions): Promise<KillReport> {
  const options = { ...SMALL, ...given };
  const random = seededRandom(options.seed);
  const { home, remove } = await temporaryHome();
  try {
    const port = await freePort();
    const env: Record<string, string> =
      options.catalogUrl === undefined ? {} : { ENGINE_CATALOG_URL: options.catalogUrl };
    const run: Run = { url: `http://127.0.0.1:${port}`, stopping: false, sent: new Map(), retries: 0 };
    const clients = Array.from({ length: CLIENTS }, (_, i) => keepSending(run, i, options));
    for (let kill = 0; kill < options.kills; kill++) {
      const engine = await startEngine({ home, port, env });
      await delay(options.lifeMs.min + random.next() * options.lifeMs.spread);
      await engine.stop("SIGKILL");
    }
    run.stopping = true;
    const engine = await startEngine({ home, port, env });
    await Promise.all(clients);
    const checked = await checkAll(run, engine, () => openCatalog(home, options.catalogUrl));
    return { kills: options.kills, requests: run.sent.size, retries: run.retries, ...checked };
  } finally {
    await remove();
  }
}

/** One client: a request after the other, each retried under its key until it is acknowledged. */
async function keepSending(run: Run, client: number, options: { seed: number; maxRows: number }): Promise<void> {
  const random = seededRandom(options.seed + client + 1);
  for (let sequence = 0; !run.stopping; sequence++) {
    const table = TABLES[Math.floor(random.next() * TABLES.length)] ?? "a";
    const key = `${client}-${sequence}`;
    const rows = Math.ceil(options.maxRows ** random.next());
    const field = `took_${Math.floor(sequence / REQUESTS_PER_FIELD)}`;
    const half = random.next() < 0.2 ? 0.5 : 0;
    const measures = Array.from({ length: rows }, (_, n) => n + (n % 7 === 3 ? half : 0));
    const sum = measures.reduce((total, measure) => total + measure, 0);
    const sent: Sent = { key: `${table}/${key}`, rows, acknowledged: false, field, sum };
    run.sent.set(sent.key, sent);
    const body = ndjson(measures.map((measure, n) => ({ label: key, n, [field]: measure, body: "x".repeat(100) })));
    await sendUntilAcknowledged(run, sent, table, key, body);
  }
}

async function sendUntilAcknowledged(run: Run, sent: Sent, table: string, key: string, body: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      const headers = { "X-Idempotency-Key": key, "X-Engine-Infer-Types": "true" };
      const { status, json, text } = await ingest(run.url, table, body, headers);
      // Too much at once is what the server may say, and "later" what it means.
      if (status === 429) throw new TypeError("refused");
      if (status !== 200) throw new Error(`status ${status}: ${text}`);
      if (json.rows_ingested !== sent.rows) throw new Error(`acknowledged ${json.rows_ingested} of ${sent.rows} rows`);
      sent.acknowledged = true;
      sent.snapshot = Number(json.snapshot_id);
      return;
    } catch (error) {
      // Anything but a broken connection or a refusal is a finding, and ends the run.
      if (!(error instanceof TypeError)) throw error;
      run.retries++;
      await delay(5);
    }
  }
}

async function checkAll(run: Run, engine: Engine, open: () => Promise<Opened>) {
  const problems: string[] = [];
  let rows = 0;
  for (const table of TABLES) rows += await checkTable(run, table, problems);
  const snapshots = await checkSnapshots(run, problems);
  await engine.stop();
  await checkStorage(await open(), problems);
  return { rows, snapshots, problems };
}

async function checkTable(run: Run, table: string, problems: string[]): Promise<number> {
  const counted = await rowsOf(
    run.url,
    `SELECT label, count(*) AS rows, count(DISTINCT n) AS numbers FROM ${table} GROUP BY label`,
  );
  const found = new Map(counted.map((row) => [`${table}/${String(row.label)}`, row]));
  const sums = await sumsOf(run, table);
  let total = 0;
  for (const sent of run.sent.values()) {
    if (!sent.key.startsWith(`${table}/`)) continue;
    const row = found.get(sent.key);
    const rows = Number(row?.rows ?? 0);
    total += rows;
    const whole = rows === sent.rows && Number(row?.numbers) === sent.rows;
    const sum = sums.get(`${sent.key} ${sent.field}`);
    if (rows > 0 && sum !== sent.sum) problems.push(`${sent.key}: ${sent.field} sums to ${sum}, not ${sent.sum}`);
    if (sent.acknowledged && !whole) problems.push(`${sent.key}: acknowledged ${sent.rows} rows, found ${rows}`);
    if (!sent.acknowledged && rows !== 0 && !whole) problems.push(`${sent.key}: in part, ${rows} of ${sent.rows} rows`);
  }
  for (const key of found.keys()) if (!run.sent.has(key)) problems.push(`${key}: rows that nobody sent`);
  return total;
}

/** What each request's values add up to, by its key and field. Every one fits a `real`, so none may be in `props`. */
async function sumsOf(run: Run, table: string): Promise<Map<string, number>> {
  const fields = new Set([...run.sent.values()].filter(({ key }) => key.startsWith(`${table}/`)).map((of) => of.field));
  const sums = new Map<string, number>();
  for (const field of fields) {
    const columns = `SELECT name FROM system.columns WHERE table_name = '${table}' AND name = '${field}'`;
    // Of a field that was only sent with requests that never came through there is no column.
    if ((await rowsOf(run.url, columns)).length === 0) continue;
    const sql = `SELECT label, sum(${field}) AS s FROM ${table} WHERE ${field} IS NOT NULL GROUP BY label`;
    for (const { label, s } of await rowsOf(run.url, sql)) sums.set(`${table}/${String(label)} ${field}`, Number(s));
  }
  return sums;
}

async function checkSnapshots(run: Run, problems: string[]): Promise<number> {
  const ids = [...run.sent.values()].flatMap(({ snapshot }) => (snapshot === undefined ? [] : [snapshot]));
  const told = [...new Set(ids)].toSorted((a, b) => a - b);
  // Each is one query over all extents so far: of very many, an even share is read.
  const step = Math.ceil(told.length / MAX_SNAPSHOTS_READ);
  const ordered = told.filter((_, i) => i % step === 0);
  for (const table of TABLES) {
    let before = 0;
    for (const id of ordered) {
      const [row] = await rowsOf(run.url, `SELECT count(*) AS rows FROM ${table} AT (VERSION => ${id})`);
      const rows = Number(row?.rows);
      if (rows < before) problems.push(`snapshot ${id} of ${table} shows ${rows} rows, an earlier one ${before}`);
      before = rows;
    }
  }
  return ordered.length;
}

type Opened = { catalog: Catalog; store: ObjectStore };

async function openCatalog(home: string, catalogUrl: string | undefined): Promise<Opened> {
  const common = { clock: systemClock, log: silentLog, migrations: MIGRATIONS, mode: "admin" } as const;
  const store = await openFilesystemStore({ root: join(home, "data"), random: systemRandom, log: silentLog });
  const catalog =
    catalogUrl === undefined
      ? await openSqliteCatalog({ ...common, path: join(home, "catalog.db") })
      : await openTestCatalog(catalogUrl);
  return { catalog, store };
}

async function checkStorage({ catalog, store }: Opened, problems: string[]): Promise<void> {
  try {
    await catalog.verify();
    const head = await catalog.head();
    for (const table of await catalog.tables("default")) {
      for (const extent of await catalog.extents(table.id, head.id)) {
        const bytes = await store.get(extent.key);
        const checksum = checksumOf(bytes);
        if (checksum !== extent.checksum) problems.push(`extent ${extent.id} does not have its bytes`);
      }
    }
  } finally {
    await catalog.close();
  }
}

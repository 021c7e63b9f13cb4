import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Connection } from "../../src/db/postgres/connection.ts";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import { openPostgresCatalog } from "../../src/catalog/postgres/postgres.ts";
import { parsePostgresUrl } from "../../src/db/postgres/url.ts";
import { systemClock } from "../../src/core/clock.ts";
import { systemRandom } from "../../src/core/random.ts";
import type { ColumnSpec } from "../../src/format/types.ts";
import { startLocalCluster, type LocalCluster } from "../../test/cluster/local-cluster.ts";
import type { Answers } from "./answers.ts";
import { cpuSecondsOf, pidListeningOn } from "./process-stats.ts";
import { byLabel, scrape } from "./scrape.ts";
import { answersOf } from "./server.ts";
import type { Checks } from "./shapes.ts";

/** A cluster to measure: one process of each role, PostgreSQL and an S3 server, all on this machine. */
export type BenchCluster = {
  local: LocalCluster;
  edgeUrl: string;
  ingestUrl: string;
  compactionUrl: string | undefined;
  pids: ReadonlyMap<Part, number>;
  /** User and system CPU seconds so far by part, all threads and children counted. */
  cpuSeconds(): ByPart;
  counts(): Promise<ClusterCounts>;
  createTable(name: string, columns: readonly ColumnSpec[]): Promise<void>;
  /** How many requests with a key are committed to the table. */
  committedKeys(table: string): Promise<number>;
  /** By key of a committed request to the table: when it was committed, by the catalog; milliseconds since the epoch. */
  committedAtMs(table: string): Promise<Map<string, number>>;
  answers(table: string, checks: Checks): Promise<Answers>;
  /** Deletes the bytes of a table that nobody looks at any more. */
  dropObjects(table: string): Promise<void>;
  stop: () => Promise<void>;
};

export const PARTS = ["edge", "ingest", "committer", "compaction", "query", "postgres", "s3"] as const;
export type Part = (typeof PARTS)[number];
export type ByPart = Readonly<Record<Part, number>>;

export type ClusterCounts = {
  /** Requests of all processes to the object store, by kind. */
  s3Requests: ReadonlyMap<string, number>;
  s3BytesOut: number;
  snapshots: number;
  extents: number;
  /** Transactions that wrote, each of which PostgreSQL commits to its log. */
  writes: number;
  /** All transactions, reads too; the server counts one up to ten seconds late. */
  transactions: number;
  /** Of PostgreSQL's log. */
  walBytes: number;
};

export type BenchClusterOptions = {
  mode: "sync" | "staged";
  compaction: boolean;
  env?: Readonly<Record<string, string>>;
};

/** Rejects where there is no PostgreSQL or no S3 server to start. */
export async function startBenchCluster({ mode, compaction, env }: BenchClusterOptions): Promise<BenchCluster> {
  const local = await startLocalCluster({
    // As S3 itself does; by default this server takes one request per connection.
    storeFlags: ["--keep-alive"],
    counts: { edge: 1, ingest: 1, query: 1, committer: 1, compaction: compaction ? 1 : 0, worker: 0 },
    // One query process suffices for the checks.
    env: { ENGINE_INGEST_MODE: mode, ENGINE_QUERY_WORKERS: "1", ENGINE_DRAIN_NOTICE_SECS: "0", ...env },
  });
  const session = { clock: systemClock, connectTimeoutMs: 10_000, lockTimeoutMs: 10_000 };
  const sql = await Connection.open(parsePostgresUrl(local.catalogUrl), session);
  const pids = pidsOf(local);
  const edgeUrl = urlOf(local, "edge");
  return {
    local,
    edgeUrl,
    ingestUrl: urlOf(local, "ingest"),
    compactionUrl: local.urls.get("compaction-1"),
    pids,
    cpuSeconds: () => cpuByPart(pids),
    counts: () => countsOf(local, sql),
    createTable: (name, columns) => createTable(local, name, columns),
    ...ledgerOf(sql),
    answers: (table, checks) => answersOf(edgeUrl, table, checks),
    dropObjects: async (table) => {
      const { bucket } = local.store;
      await rm(join(local.folder, "s3", "data", bucket, "engine", "default", table), { recursive: true, force: true });
    },
    stop: async () => {
      await sql.close();
      await local.giveUp();
    },
  };
}

/** What the catalog has on record of a table's requests. */
function ledgerOf(sql: Connection): Pick<BenchCluster, "committedKeys" | "committedAtMs"> {
  const ledger = "engine.ledger WHERE table_id = (SELECT id FROM engine.tables WHERE folded_name = $1)";
  return {
    committedKeys: async (table) => {
      const [row] = await sql.query(`SELECT count(*) AS n FROM ${ledger}`, [table]);
      return Number(row?.["n"]);
    },
    committedAtMs: async (table) => {
      const rows = await sql.values(`SELECT key, created_at_ms FROM ${ledger}`, [table]);
      return new Map(rows.map(([key, atMs]) => [String(key), Number(atMs)]));
    },
  };
}

function urlOf({ urls }: LocalCluster, role: Part): string {
  const url = urls.get(`${role}-1`);
  if (url === undefined) throw new Error(`the cluster has no ${role}`);
  return url;
}

function pidsOf({ urls, catalogUrl, store }: LocalCluster): Map<Part, number> {
  const addresses = { postgres: catalogUrl, s3: store.endpoint };
  const pids = new Map<Part, number>();
  for (const part of PARTS) {
    const url = part === "postgres" || part === "s3" ? addresses[part] : urls.get(`${part}-1`);
    if (url !== undefined) pids.set(part, pidListeningOn(Number(new URL(url).port)));
  }
  return pids;
}

function cpuByPart(pids: ReadonlyMap<Part, number>): ByPart {
  const seconds = (part: Part) => {
    const pid = pids.get(part);
    return pid === undefined ? 0 : cpuSecondsOf(pid);
  };
  return mapParts(seconds);
}

/** A record of what the function says of each part. */
export function mapParts(of: (part: Part) => number): ByPart {
  return {
    edge: of("edge"),
    ingest: of("ingest"),
    committer: of("committer"),
    compaction: of("compaction"),
    query: of("query"),
    postgres: of("postgres"),
    s3: of("s3"),
  };
}

const COUNTS = `SELECT snapshot_id, last_seq, pg_snapshot_xmax(pg_current_snapshot())::text AS next_xid,
  pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS wal_bytes,
  (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS transactions FROM engine.head`;

async function countsOf({ urls }: LocalCluster, sql: Connection): Promise<ClusterCounts> {
  const s3Requests = new Map<string, number>();
  let s3BytesOut = 0;
  for (const url of urls.values()) {
    const metrics = await scrape(url);
    for (const [kind, requests] of byLabel(metrics, "engine_objstore_requests_total", "kind")) {
      s3Requests.set(kind, (s3Requests.get(kind) ?? 0) + requests);
    }
    s3BytesOut += byLabel(metrics, "engine_objstore_bytes_total", "direction").get("out") ?? 0;
  }
  const [row] = await sql.query(COUNTS);
  const count = (name: string) => Number(row?.[name]);
  return {
    s3Requests,
    s3BytesOut,
    snapshots: count("snapshot_id"),
    extents: count("last_seq"),
    writes: count("next_xid"),
    transactions: count("transactions"),
    walBytes: count("wal_bytes"),
  };
}

async function createTable({ catalogUrl }: LocalCluster, name: string, columns: readonly ColumnSpec[]): Promise<void> {
  const catalog = await openPostgresCatalog({
    url: catalogUrl,
    clock: systemClock,
    random: systemRandom,
    migrations: MIGRATIONS,
    mode: "admin",
    maxConnections: 1,
    acquireTimeoutMs: 10_000,
  });
  try {
    await catalog.createTable({ database: "default", name, columns });
  } finally {
    await catalog.close();
  }
}

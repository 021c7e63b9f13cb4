import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Catalog, ExtentRecord, Snapshot, TableRecord } from "../../catalog/catalog.ts";
import { columnsInQuestion, isPublished } from "../../catalog/publishable.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import { formatColumnType, originOf } from "../../format/types.ts";
import type { RecordStore } from "../../db/records.ts";
import type { Caller } from "../../auth/caller.ts";
import { usableDatabases } from "../../auth/usable-databases.ts";
import { ownerFilter } from "../../auth/owner.ts";
import type { QueryLog, QueryRecord, QueryStage } from "./query-log.ts";
import { columnStatsRows } from "./column-stats.ts";
import { columnRows, schemaRow, tableRow } from "./information-schema.ts";
import { sandboxEventRows } from "./sandbox-events.ts";
import { snapshotRows } from "./snapshots.ts";
import { ExtentPages } from "./extents.ts";
import type { SystemRow, SystemTable, SystemValue } from "../../feature/system-table.ts";
import { nsOfMs } from "./values.ts";
import {
  fullNameOf,
  NULL_MARK,
  SYSTEM_TABLES,
  type OwnTableName,
  type SystemTableFile,
  type SystemTableName,
} from "./system-tables.ts";

/**
 * A staged write that is not committed, as ingest lists them; damaged ones are those that were set aside. Which database
 * it is for only its bytes say.
 */
export type StagedWrite = {
  state: "pending" | "damaged";
  node: string;
  id: string;
  key: string;
  sizeBytes: number;
  stagedAtMs: number;
  reason?: string;
};

/** Writes the rows of system tables for one query: what is its own database's, what is everybody's, what its caller may read. */
export type SystemRowsContext = {
  catalog: Catalog;
  records: Pick<RecordStore, "rows">;
  /** Who asks. */
  caller: Pick<Caller, "owner" | "subject" | "kind" | "role" | "databases">;
  queryLog: QueryLog;
  /** Lists staged writes, damaged ones first. */
  listStaged: () => AsyncIterable<StagedWrite>;
  /** Those of features. */
  systemTables: readonly SystemTable[];
  /** A database that exists. */
  database: string;
  head: Snapshot;
  /** The snapshot that extents of a table are listed at. Rejects with `EngineError` where it cannot be read. */
  snapshotOf: (table: TableRecord) => Promise<number>;
  /** A folder that the query's process may read; whoever owns it deletes the files. */
  folder: string;
  signal: AbortSignal;
};

/** Each page of the list is a request to the object store, and each damaged write another. */
export const MAX_STAGED = 10_000;
const MAX_REASON_CHARS = 4_000;
/** More than that is no list that anybody reads, and would have to be held and written for every mention. */
const MAX_ROWS = 1_000_000;
/** Per write: small enough that other requests get their turn in between. */
const ROWS_PER_WRITE = 500;

/** Rejects with `EngineError`, or the signal's reason. */
export async function writeSystemTables(
  names: readonly SystemTableName[],
  context: SystemRowsContext,
): Promise<SystemTableFile[]> {
  const files = names.map((name) => ({ name, path: join(context.folder, `${name}.csv`) }));
  try {
    for (const { name, path } of files) await writeRows(name, path, context);
    return files;
  } catch (error) {
    await Promise.all(files.map(({ path }) => rm(path, { force: true })));
    throw error;
  }
}

async function writeRows(name: SystemTableName, path: string, context: SystemRowsContext): Promise<void> {
  const source = sourceOf(name, context);
  const columns = source.columns.map((column) => column.name);
  const file = await open(path, "w", 0o600);
  try {
    let written = 0;
    let lines: string[] = [];
    const flush = async (): Promise<void> => {
      await file.write(lines.join(""));
      lines = [];
    };
    for await (const row of source.rows) {
      if (++written > MAX_ROWS) throw tooLong(name);
      lines.push(lineOf(columns, row));
      if (lines.length < ROWS_PER_WRITE) continue;
      context.signal.throwIfAborted();
      await flush();
    }
    await flush();
  } finally {
    await file.close();
  }
}

function sourceOf(
  name: SystemTableName,
  context: SystemRowsContext,
): Pick<SystemTable, "columns"> & { rows: AsyncIterable<SystemRow> } {
  const table = context.systemTables.find((one) => fullNameOf(one) === name);
  if (table !== undefined) return { columns: table.columns, rows: table.rows(context) };
  const own = name as OwnTableName;
  return { columns: SYSTEM_TABLES[own], rows: ROWS[own](context) };
}

function tooLong(name: SystemTableName): EngineError {
  return new EngineError("invalid_query", `${name} has more than ${MAX_ROWS} rows`);
}

function lineOf(columns: readonly string[], row: SystemRow): string {
  return `${columns.map((name) => fieldOf(row[name])).join(",")}\n`;
}

/** DuckDB's CSV reader takes a NUL for the end of the text. */
function fieldOf(value: SystemValue): string {
  if (value === undefined) return NULL_MARK;
  if (typeof value !== "string") return String(value);
  return `"${value.toWellFormed().replaceAll("\0", "\uFFFD").replaceAll('"', '""')}"`;
}

async function* readableTables(context: SystemRowsContext): AsyncGenerator<TableRecord> {
  for (const database of await usableDatabases(context.catalog, context.caller)) {
    context.signal.throwIfAborted();
    yield* await context.catalog.tables(database);
  }
}

const ROWS: Readonly<Record<OwnTableName, (context: SystemRowsContext) => AsyncGenerator<SystemRow>>> = {
  "system.tables": async function* ({ catalog, database }) {
    for (const table of await catalog.tables(database)) {
      const { rows, extents, sizeBytes } = await catalog.tableStats(table.id);
      yield {
        name: table.name,
        columns: table.columns.length,
        rows,
        extents,
        bytes: sizeBytes,
        schema_version: table.schemaVersion,
        retention_days: table.retentionDays,
        cluster_by: table.clusterBy.length === 0 ? undefined : JSON.stringify(table.clusterBy),
        infer_types: table.inferTypes,
        open_lag_secs: table.openLagSecs,
      };
    }
  },
  "system.columns": async function* ({ catalog, database }) {
    for (const table of await catalog.tables(database)) {
      const misfits = await catalog.misfits(table.id);
      for (const [i, column] of table.columns.entries()) {
        const { id, name, type } = column;
        const place = { table_name: table.name, position: i + 1 };
        const own = { name, type: formatColumnType(type), origin: originOf(column) };
        yield { ...place, ...own, misfits: misfits.get(id) ?? 0 };
      }
    }
  },
  "information_schema.schemata": async function* (context) {
    for (const database of await usableDatabases(context.catalog, context.caller)) yield schemaRow(database);
  },
  "information_schema.tables": async function* (context) {
    for await (const table of readableTables(context)) yield tableRow(table);
  },
  "information_schema.columns": async function* (context) {
    for await (const table of readableTables(context)) yield* columnRows(table);
  },
  "system.extents": async function* ({ catalog, database, snapshotOf }) {
    const pages = new ExtentPages(catalog);
    for (const table of await catalog.tables(database)) {
      const snapshot = await snapshotOf(table);
      for await (const extent of pages.of(table.id, snapshot, columnsInQuestion(table))) {
        yield extentRow(table, extent, snapshot);
      }
    }
  },
  "system.column_stats": async function* ({ catalog, database, head, signal }) {
    const pages = new ExtentPages(catalog);
    for (const table of await catalog.tables(database)) {
      signal.throwIfAborted();
      const names = table.columns.map(({ name }) => name);
      yield* columnStatsRows(table, pages.of(table.id, head.id, names));
    }
  },
  "system.snapshots": ({ catalog, database }) => snapshotRows(catalog, database),
  "system.sandbox_events": ({ records, caller }) => sandboxEventRows(records, ownerFilter(caller)),
  "system.queries": async function* ({ queryLog, database, caller }) {
    for (const record of queryLog.of(database, caller)) yield queryRow(record);
  },
  "system.staged": async function* ({ listStaged, signal }) {
    try {
      let rows = 0;
      for await (const write of listStaged()) {
        signal.throwIfAborted();
        if (rows++ === MAX_STAGED) return;
        yield stagedRow(write);
      }
    } catch (error) {
      signal.throwIfAborted();
      throw new EngineError("query_failed", `staged writes cannot be listed: ${messageOf(error)}`, { cause: error });
    }
  },
};

function stagedRow({ state, node, id, key, sizeBytes, stagedAtMs, reason }: StagedWrite): SystemRow {
  const staged = { state, node, id, key, size_bytes: sizeBytes, staged_at: nsOfMs(stagedAtMs) };
  return { ...staged, reason: reason?.slice(0, MAX_REASON_CHARS) };
}

function extentRow(table: TableRecord, extent: ExtentRecord, snapshot: number): SystemRow {
  return {
    table_name: table.name,
    id: extent.id,
    format: extent.format,
    rows: extent.rows,
    bytes: extent.sizeBytes,
    min_at: extent.minAtNs,
    max_at: extent.maxAtNs,
    begin_snapshot: extent.beginSnapshot,
    schema_version: extent.schemaVersion,
    checksum: extent.checksum,
    format_version: extent.formatVersion,
    is_publishable: isPublished(table, snapshot, extent),
  };
}

function queryRow(record: QueryRecord): SystemRow {
  const { extentsTotal, extentsRead, stagesMs } = record;
  const pruned = extentsTotal === undefined || extentsRead === undefined ? undefined : extentsTotal - extentsRead;
  const stages: readonly QueryStage[] = ["queue", "translate", "parse", "plan", "fetch", "scan", "stream"];
  return {
    request_id: record.requestId,
    database: record.database,
    started_at: nsOfMs(record.startedAtMs),
    text: record.text,
    language: record.language,
    outcome: record.outcome,
    rows: record.rows,
    result_bytes: record.resultBytes,
    extents_total: extentsTotal,
    extents_pruned: pruned,
    extents_read: extentsRead,
    rows_read: record.rowsRead,
    bytes_read: record.bytesRead,
    cache_hits: record.cacheHits,
    spill_bytes: record.spillBytes,
    cpu_ms: record.cpuMs,
    total_ms: record.totalMs,
    ...Object.fromEntries(stages.map((stage) => [`${stage}_ms`, stagesMs[stage]])),
    query_id: record.id,
    memory_bytes: record.memoryBytes,
    ended_by: record.endedBy,
  };
}

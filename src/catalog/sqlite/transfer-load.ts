import { existsSync, fsyncSync, openSync, closeSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { SQLInputValue } from "node:sqlite";
import { Connection } from "../../db/sqlite/connection.ts";
import { toDatabaseError } from "../../db/sqlite/errors.ts";
import { acquireServerLock } from "../../db/sqlite/lock.ts";
import { APPLICATION_ID, versionOf } from "../../db/sqlite/migrate.ts";
import { prepareFile } from "../../db/sqlite/open.ts";
import { runRecords } from "../../db/sqlite/records.ts";
import { LEFT_BY_SERVERS, notEmpty, stepsOf, type LoadOptions } from "../transfer/load.ts";
import { settleStatements } from "../transfer/settle.ts";
import {
  checkKnown,
  NUMBERS,
  numbersIn,
  type NumbersRow,
  type TransferColumn,
  type TransferRow,
  type TransferTable,
  type TransferValue,
} from "../transfer/transfer.ts";
import { spanClassOf } from "./extents.ts";
import { quoted, sqliteTables } from "./transfer-layout.ts";
import { verifyCatalog } from "./verify.ts";

/** Runs `work` on a catalog that is empty or not there, and keeps servers away from it. Throws `conflict` and `StartupError`. */
export async function withEmptySqlite<T>(givenPath: string, work: (path: string) => Promise<T>): Promise<T> {
  const path = prepareFile(givenPath);
  const lock = acquireServerLock(path);
  try {
    checkEmpty(path);
    return await work(path);
  } finally {
    lock.release();
  }
}

/**
 * Makes the catalog beside the place where it is to be, and renames it there when it is whole and durable: an interrupted
 * load leaves the place as it was, and the next one begins anew. For `withEmptySqlite`.
 */
export async function loadSqlite(path: string, options: LoadOptions): Promise<void> {
  const made = `${path}.restoring`;
  const removeMade = (): void => ["", "-journal"].forEach((suffix) => rmSync(made + suffix, { force: true }));
  removeMade();
  try {
    await makeCatalog(made, options);
    syncPath(made);
    // What is there is empty; its log must not be taken for that of the new file.
    for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
    renameSync(made, path);
    syncPath(dirname(path));
  } catch (error) {
    removeMade();
    throw toDatabaseError(error, path);
  }
}

function checkEmpty(path: string): void {
  if (!existsSync(path)) return;
  const connection = new Connection(path, { readOnly: false, busyTimeoutMs: 1_000 });
  try {
    if (versionOf(connection, path) === 0) return;
    const tables = connection.all("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'");
    for (const { name } of tables) {
      const table = String(name);
      if (table === "meta" || LEFT_BY_SERVERS.includes(table)) continue;
      // The first snapshot comes with the catalog.
      const row = connection.get(
        `SELECT 1 FROM ${quoted(table)} ${table === "snapshots" ? "WHERE id > 0" : ""} LIMIT 1`,
      );
      if (row !== undefined) throw notEmpty(path, table);
    }
    connection.db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    connection.close();
  }
}

async function makeCatalog(path: string, options: LoadOptions): Promise<void> {
  const { source, clock, signal } = options;
  const { before, after } = stepsOf("sqlite", options);
  const connection = new Connection(path, { readOnly: false, busyTimeoutMs: 0 });
  try {
    connection.db.exec("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF");
    connection.db.exec(`PRAGMA application_id = ${APPLICATION_ID}; BEGIN`);
    for (const text of before) connection.db.exec(text);
    const known = sqliteTables(connection);
    for (const table of source.tables) {
      checkKnown(table, known);
      if (table.name === NUMBERS) continue;
      const insert = inserterOf(connection, table);
      for await (const rows of source.rows(table.name)) {
        signal?.throwIfAborted();
        for (const row of rows) insert(row);
      }
    }
    setNumbers(connection, await numbersIn(source));
    for (const text of after) connection.db.exec(text);
    runRecords(connection, clock.nowMs(), settleStatements(clock.nowMs()));
    connection.db.exec(`PRAGMA user_version = ${before.length + after.length}; COMMIT`);
    connection.read(() => verifyCatalog(connection));
  } finally {
    connection.close();
  }
}

function inserterOf(connection: Connection, table: TransferTable): (row: TransferRow) => void {
  if (table.name === "extents") return extentInserter(connection, table);
  const insert = connection.statement(insertInto(table.name, table.columns));
  return (row) => void insert.run(...row.map((value, i) => toStored(value, table.columns[i])));
}

/** Columns of an extent that lie in a table of their own. */
const APART: ReadonlySet<string> = new Set(["column_ids", "stats"]);

function at(row: TransferRow, place = -1): TransferValue {
  return row[place] ?? null;
}

function extentInserter(connection: Connection, table: TransferTable): (row: TransferRow) => void {
  const own = table.columns.filter(({ name }) => !APART.has(name));
  const insert = connection.statement(insertInto("extents", [...own, { name: "span_class", type: "int" }]));
  const insertStats = connection.statement("INSERT INTO extent_stats (seq, column_ids, stats) VALUES (?, ?, ?)");
  const placeOf = (name: string): number => table.columns.findIndex((column) => column.name === name);
  const [seq, ids, stats, min, max] = ["seq", "column_ids", "stats", "min_at_ns", "max_at_ns"].map(placeOf);
  return (row) => {
    const values = table.columns.flatMap((column, i) => (APART.has(column.name) ? [] : [toStored(at(row, i), column)]));
    insert.run(...values, spanClassOf(BigInt(at(row, min) ?? 0), BigInt(at(row, max) ?? 0)));
    insertStats.run(at(row, seq), at(row, ids), at(row, stats));
  };
}

function insertInto(table: string, columns: readonly TransferColumn[]): string {
  const names = columns.map(({ name }) => quoted(name)).join(", ");
  return `INSERT INTO ${quoted(table)} (${names}) VALUES (${columns.map(() => "?").join(", ")})`;
}

function toStored(value: TransferValue, column: TransferColumn | undefined): SQLInputValue {
  if (value === null || typeof value === "number") return value;
  if (column?.type === "int") return BigInt(value);
  return column?.type === "blob" ? Buffer.from(value, "base64") : value;
}

/** The sequences go on where they were; whoever remembers the schema of another catalog finds this one changed. */
function setNumbers(connection: Connection, numbers: NumbersRow): void {
  connection.run(
    "UPDATE meta SET schema_generation = ?, oldest_snapshot = ?",
    numbers.schema_generation + 1,
    numbers.oldest_snapshot,
  );
  const sequences = { databases: numbers.last_database_id, tables: numbers.last_table_id };
  for (const [name, last] of Object.entries(sequences)) {
    connection.run("DELETE FROM sqlite_sequence WHERE name = ?", name);
    connection.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", name, BigInt(last));
  }
}

function syncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

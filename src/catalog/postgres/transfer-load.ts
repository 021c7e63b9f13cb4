import { EngineError } from "../../core/errors.ts";
import { Connection } from "../../db/postgres/connection.ts";
import { toDatabaseError, toStartupError } from "../../db/postgres/errors.ts";
import { BIRTH, LOCK } from "../../db/postgres/migrate.ts";
import { translate } from "../../db/postgres/records.ts";
import { parsePostgresUrl, showAddress } from "../../db/postgres/url.ts";
import { LEFT_BY_SERVERS, notEmpty, stepsOf, type LoadOptions } from "../transfer/load.ts";
import { settleStatements } from "../transfer/settle.ts";
import {
  checkKnown,
  NUMBERS,
  numbersIn,
  TransferMismatch,
  type NumbersRow,
  type TransferRow,
  type TransferTable,
} from "../transfer/transfer.ts";
import { postgresTables, quoted, type PostgresTable } from "./transfer-layout.ts";
import { verifyCatalog } from "./verify.ts";

const TIMEOUT_MS = 30_000;

/**
 * One transaction in which the schema is made anew where the catalog is empty or not there. Throws `conflict` for one that
 * is in use, and `StartupError`.
 */
export async function withEmptyPostgres<T>(
  { url, clock }: { url: string } & Pick<LoadOptions, "clock">,
  work: (load: (options: LoadOptions) => Promise<void>) => Promise<T>,
): Promise<T> {
  const address = parsePostgresUrl(url);
  let connection: Connection;
  try {
    connection = await Connection.open(address, { clock, connectTimeoutMs: TIMEOUT_MS, lockTimeoutMs: TIMEOUT_MS });
  } catch (error) {
    throw toStartupError(error, address);
  }
  const name = showAddress(address);
  try {
    await connection.script(`SELECT pg_advisory_lock(${LOCK})`);
    await checkEmpty(connection, name);
    return await work((options) => load(connection, name, options));
  } catch (error) {
    throw toDatabaseError(error);
  } finally {
    await connection.close().catch(() => connection.destroy());
  }
}

async function load(connection: Connection, name: string, options: LoadOptions): Promise<void> {
  const { before, after } = stepsOf("postgres", options);
  await connection.script("BEGIN; SET LOCAL idle_in_transaction_session_timeout = '10min'");
  try {
    await checkEmpty(connection, name);
    await connection.script("DROP SCHEMA IF EXISTS engine CASCADE");
    await connection.script(BIRTH);
    for (const text of before) await connection.script(text);
    await loadTables(connection, options);
    await setNumbers(connection, await numbersIn(options.source));
    for (const text of after) await connection.script(text);
    await connection.query("UPDATE engine.meta SET schema_version = $1", [before.length + after.length]);
    for (const statement of settleStatements(options.clock.nowMs())) {
      const { text, parameters } = translate(statement, null);
      await connection.query(text, parameters);
    }
    await connection.script("COMMIT");
  } catch (error) {
    if (!connection.isLost) await connection.script("ROLLBACK");
    throw error;
  }
  await verifyCatalog(connection);
}

/** Throws unless nothing is there, or a catalog without anything in it and without servers. */
async function checkEmpty(connection: Connection, name: string): Promise<void> {
  const [found] = await connection.query(
    "SELECT to_regnamespace('engine') IS NOT NULL AS has_schema, to_regclass('engine.meta') IS NOT NULL AS has_meta, " +
      "current_setting('server_encoding') AS encoding, (SELECT count(*) FROM pg_stat_activity " +
      "WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid() " +
      "AND application_name = current_setting('application_name')) AS sessions",
  );
  if (found?.["encoding"] !== "UTF8") {
    throw new EngineError("conflict", `the database ${name} is not in UTF-8: create one with ENCODING 'UTF8'`);
  }
  if (found["has_schema"] !== true) return;
  if (found["has_meta"] !== true) {
    const what = `the database ${name} has a schema "engine" of another program`;
    throw new EngineError("conflict", `${what}: choose another database with ENGINE_CATALOG_URL`);
  }
  const sessions = Number(found["sessions"]);
  if (sessions > 0) {
    const what = `${sessions} sessions of this program are connected to the catalog ${name}`;
    throw new EngineError("conflict", `${what}: stop its servers, or name another catalog`);
  }
  for (const table of await tablesOf(connection)) {
    if (["meta", "head", "horizon", ...LEFT_BY_SERVERS].includes(table)) continue;
    const where = table === "snapshots" ? "WHERE id > 0" : "";
    const rows = await connection.query(`SELECT 1 AS one FROM engine.${quoted(table)} ${where} LIMIT 1`);
    if (rows.length > 0) throw notEmpty(name, table);
  }
}

async function tablesOf(connection: Connection): Promise<string[]> {
  const rows = await connection.query(
    "SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('engine') AND relkind = 'r' ORDER BY 1",
  );
  return rows.map(({ relname }) => String(relname));
}

async function loadTables(connection: Connection, { source, signal }: LoadOptions): Promise<void> {
  const known = await postgresTables(connection);
  for (const table of await parentsFirst(connection, source.tables)) {
    checkKnown(table, known);
    if (table.name === NUMBERS) continue;
    const statements = insertsOf(table, typesOf(table, known));
    for await (const rows of source.rows(table.name)) {
      signal?.throwIfAborted();
      const json = JSON.stringify(rows.map(toRecord));
      for (const statement of statements) await connection.query(statement, [json]);
    }
  }
}

/** Tables that others point to come before those. */
async function parentsFirst(connection: Connection, tables: readonly TransferTable[]): Promise<TransferTable[]> {
  const rows = await connection.query(
    "SELECT c.relname AS child, p.relname AS parent FROM pg_catalog.pg_constraint f " +
      "JOIN pg_catalog.pg_class c ON c.oid = f.conrelid JOIN pg_catalog.pg_class p ON p.oid = f.confrelid " +
      "WHERE f.contype = 'f' AND c.relnamespace = to_regnamespace('engine')",
  );
  const parents = Map.groupBy(rows, ({ child }) => String(child));
  const ordered = new Map<string, TransferTable>();
  const add = (table: TransferTable): void => {
    if (ordered.has(table.name)) return;
    for (const { parent } of parents.get(table.name) ?? []) {
      const found = tables.find(({ name }) => name === parent);
      if (found !== undefined && found !== table) add(found);
    }
    ordered.set(table.name, table);
  };
  tables.forEach(add);
  return [...ordered.values()];
}

function typesOf(table: TransferTable, known: readonly PostgresTable[]): string[] {
  const found = known.find(({ name }) => name === table.name);
  return table.columns.map(({ name }) => {
    const type = found?.types[found.columns.findIndex((column) => column.name === name)];
    if (type === undefined) throw new TransferMismatch(`its table ${table.name} has a column ${JSON.stringify(name)}`);
    return type;
  });
}

/** By place: names of columns would be repeated for every row. */
function toRecord(row: TransferRow): Record<string, unknown> {
  return Object.fromEntries(row.map((value, i) => [`c${i}`, value]));
}

/** What a statement computes for a column that does not travel. */
const COMPUTED: Readonly<Record<string, { column: string; of: string }>> = {
  ledger: { column: "key_hash", of: "key" },
  staged: { column: "id_hash", of: "id" },
};

/** The statements that insert a batch, each of the same JSON text. */
function insertsOf(table: TransferTable, types: readonly string[]): string[] {
  const records = `json_to_recordset($1::text::json) AS r (${types.map((type, i) => `c${i} ${wireType(type)}`).join(", ")})`;
  const placeOf = (name: string): number => table.columns.findIndex((column) => column.name === name);
  const insert = (into: string, places: readonly number[]): string => {
    const columns = places.map((i) => quoted(table.columns[i]?.name ?? ""));
    const values = places.map((i) => stored(types[i] ?? "", `r.c${i}`));
    const computed = COMPUTED[into];
    if (computed !== undefined) {
      columns.push(quoted(computed.column));
      values.push(`sha256(convert_to(r.c${placeOf(computed.of)}, 'UTF8'))`);
    }
    const target = `INSERT INTO engine.${quoted(into)} (${columns.join(", ")}) OVERRIDING SYSTEM VALUE`;
    return `${target} SELECT ${values.join(", ")} FROM ${records}`;
  };
  const all = table.columns.map((_, i) => i);
  if (table.name !== "extents") return [insert(table.name, all)];
  const own = all.filter((i) => i !== placeOf("stats"));
  return [insert("extents", own), insert("extent_stats", [placeOf("seq"), placeOf("stats")])];
}

function wireType(type: string): string {
  if (type === "boolean") return "integer";
  return type === "bytea" ? "text" : type;
}

function stored(type: string, value: string): string {
  if (type === "boolean") return `(${value} <> 0)`;
  return type === "bytea" ? `decode(${value}, 'base64')` : value;
}

/** The head, and the sequences, go on where they were. */
async function setNumbers(connection: Connection, numbers: NumbersRow): Promise<void> {
  await connection.query(
    "INSERT INTO engine.head (id, snapshot_id, committed_at_ms, last_seq, schema_generation) " +
      "SELECT 1, id, committed_at_ms, $2::bigint, $3::bigint FROM engine.snapshots WHERE id = $1::bigint",
    [numbers.last_snapshot, numbers.last_seq, numbers.schema_generation + 1],
  );
  await connection.query("INSERT INTO engine.horizon (id, oldest_snapshot) VALUES (1, $1::bigint)", [
    numbers.oldest_snapshot,
  ]);
  const sequences = { databases_id_seq: numbers.last_database_id, tables_id_seq: numbers.last_table_id };
  for (const [name, last] of Object.entries(sequences)) {
    if (last > 0) await connection.query(`SELECT setval('engine.${name}', $1::bigint)`, [last]);
  }
}

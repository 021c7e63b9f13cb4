import type { Connection } from "../../db/postgres/connection.ts";
import { checkVersion } from "../transfer/check-version.ts";
import {
  BATCH_ROWS,
  toTransferInt,
  type CatalogReader,
  type SchemaNumbers,
  type TransferRow,
  type TransferValue,
} from "../transfer/transfer.ts";
import { postgresTables, type PostgresTable } from "./transfer-layout.ts";

/**
 * Whole tables are read, in the order of their keys, so that plans for look-ups are not what is wanted. The reader may
 * wait for what the rows are written to.
 */
const BEGIN =
  "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '10min'; " +
  "SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on; " +
  "SET LOCAL plan_cache_mode = 'force_custom_plan'";

/** The catalog as of now, read in one transaction of a session that is closed with it. */
export async function openTransfer(connection: Connection, schema: SchemaNumbers): Promise<CatalogReader> {
  try {
    await connection.script(BEGIN);
    const [row] = await connection.query("SELECT schema_version FROM engine.meta WHERE id = 1");
    checkVersion(Number(row?.["schema_version"]), schema.postgres);
    const tables = await postgresTables(connection);
    return {
      schema,
      tables: tables.map(({ name, columns }) => ({ name, columns })),
      rows: (name) => rowsOf(connection, tableNamed(tables, name)),
      close: () => connection.close(),
    };
  } catch (error) {
    connection.destroy();
    throw error;
  }
}

function tableNamed(tables: readonly PostgresTable[], name: string): PostgresTable {
  const found = tables.find((table) => table.name === name);
  if (found === undefined) throw new Error(`the catalog has no table ${name} to be read`);
  return found;
}

async function* rowsOf(connection: Connection, table: PostgresTable): AsyncGenerator<TransferRow[]> {
  // A name of its own: the statement that fetches is prepared by its text.
  const cursor = `transfer_${table.name}`;
  await connection.script(`DECLARE ${cursor} NO SCROLL CURSOR FOR ${table.select}`);
  const integers = table.columns.map(({ type }) => type === "int");
  for (;;) {
    const rows = await connection.values(`FETCH ${BATCH_ROWS} FROM ${cursor}`);
    if (rows.length === 0) break;
    yield rows.map((row) => row.map((value, i) => toValue(value, integers[i] === true)));
  }
  await connection.script(`CLOSE ${cursor}`);
}

function toValue(value: unknown, isInt: boolean): TransferValue {
  if (value === null) return null;
  if (typeof value === "number" || typeof value === "string") return isInt ? toTransferInt(value) : String(value);
  throw new Error(`PostgreSQL gave a value of the type ${typeof value}, of which no backup can be made`);
}

import type { Connection } from "../../db/sqlite/connection.ts";
import {
  BATCH_CHARS,
  BATCH_ROWS,
  charsOf,
  toTransferInt,
  type TransferRow,
  type TransferTable,
  type TransferValue,
} from "../transfer/transfer.ts";
import { sqliteTables, type SqliteTable } from "./transfer-layout.ts";

/** Reads the catalog table by table in one transaction, which lasts until the connection is closed. */
export class TransferRead {
  readonly #connection: Connection;
  readonly #tables: readonly SqliteTable[];
  /** How many migrations the catalog has seen. */
  readonly version: number;
  #rows: Iterator<readonly unknown[]> | undefined;
  #table: SqliteTable | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.db.exec("BEGIN");
    // The first read is what the transaction sees from then on.
    this.version = connection.pragma("user_version");
    this.#tables = sqliteTables(connection);
  }

  get tables(): TransferTable[] {
    return this.#tables.map(({ name, columns }) => ({ name, columns }));
  }

  start(name: string): void {
    this.#table = this.#tables.find((table) => table.name === name);
    if (this.#table === undefined) throw new Error(`the catalog has no table ${name} to be read`);
    const statement = this.#connection.db.prepare(this.#table.select);
    statement.setReadBigInts(true);
    statement.setReturnArrays(true);
    this.#rows = statement.iterate() as unknown as Iterator<readonly unknown[]>;
  }

  /** The next rows of the table that was started; none at its end. */
  next(): TransferRow[] {
    const batch: TransferRow[] = [];
    for (let chars = 0; batch.length < BATCH_ROWS && chars < BATCH_CHARS;) {
      const { done, value } = this.#rows?.next() ?? { done: true, value: undefined };
      if (done === true || value === undefined) {
        // A statement that is asked again begins anew.
        this.#rows = undefined;
        break;
      }
      const row = value.map(toValue);
      chars += charsOf(row);
      batch.push(row);
    }
    return batch;
  }
}

function toValue(value: unknown): TransferValue {
  if (value === null || typeof value === "string") return value;
  // A number that was bound as one is a double where the column has no type.
  if (typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value))) return toTransferInt(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64");
  throw new Error(`the catalog has a value of the type ${typeof value}, of which no backup can be made`);
}

/**
 * The catalog on its way from one database to another, of either kind: what a backup holds of it.
 *
 * The tables travel as rows of plain values, by the names of their columns. Every table goes that the database has, so a
 * new feature's are in by themselves, but for those of `LEFT_OUT`. Where SQLite and PostgreSQL keep the same thing in
 * different shapes, `sqlite-layout.ts` and `postgres-layout.ts` say how one reads and writes the common one: extents
 * with their statistics, and the numbers that the two count in other ways (`NUMBERS`).
 *
 * A reader shows one moment: everything that was committed when it was opened, nothing of what comes later. A load is
 * all or nothing, whenever it is interrupted.
 */
export type TransferColumn = {
  name: string;
  /** `int`: 64 bits, with flags as 0 and 1; `blob`: bytes. */
  type: "int" | "text" | "blob";
};

export type TransferTable = { name: string; columns: readonly TransferColumn[] };

/** An `int` past 2^53 is decimal text, a `blob` base64. */
export type TransferValue = string | number | null;

/** By the order of the table's columns. */
export type TransferRow = readonly TransferValue[];

/** How many migrations a catalog has seen: its own number, and the one that it would have in the other database. */
export type SchemaNumbers = { sqlite: number; postgres: number };

export interface TransferSource {
  readonly schema: SchemaNumbers;
  readonly tables: readonly TransferTable[];
  /** The rows of a table, in batches of some MiB at most. One table at a time. */
  rows(table: string): AsyncIterable<readonly TransferRow[]>;
}

/** A catalog as of one moment. */
export interface CatalogReader extends TransferSource {
  close(): Promise<void>;
}

/** The table of one row with what is no table in both: see `NumbersRow`. */
export const NUMBERS = "catalog_numbers";

export const NUMBERS_COLUMNS = [
  "last_snapshot",
  "oldest_snapshot",
  "schema_generation",
  "last_seq",
  "last_database_id",
  "last_table_id",
] as const;

/** The newest snapshot and the oldest readable one; and the last numbers that were given, so that none comes twice. */
export type NumbersRow = Record<(typeof NUMBERS_COLUMNS)[number], number>;

/** Tables that do not travel, and why. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  meta: `its numbers are in ${NUMBERS}`,
  head: `its numbers are in ${NUMBERS}`,
  horizon: `its numbers are in ${NUMBERS}`,
  extent_stats: "statistics travel with their extents",
  commits: "answers for clients that wait for a commit at that moment",
  snapshot_holds: "what queries of running servers read",
  servers: "servers that run",
  sandbox_gateways: "addresses of running servers",
  sessions: "a session that was ended since would be good again: users sign in anew",
  access_tokens: "they belong to sessions",
  refresh_tokens: "they belong to sessions",
  web_sessions: "as sessions",
  oauth_flows: "sign-ins that are under way",
  dreaming_remote: "dreams under way on workers, which begin anew when the leases have ended",
  remote_queries: "queries that run elsewhere at that moment",
  publish_requests: "what somebody waits for at that moment",
  open_snapshots: "what is listed in the store for other programs is not backed up, and is listed anew",
  oauth_device_flows: "sign-ins that are under way",
};

/** Rows of a batch at most. */
export const BATCH_ROWS = 500;
/** Characters of a batch, roughly: rows of extents may have 100 kB of statistics each. */
export const BATCH_CHARS = 4 * 1024 * 1024;

/** A row's size for `BATCH_CHARS`. */
export function charsOf(row: TransferRow): number {
  let chars = 0;
  for (const value of row) chars += typeof value === "string" ? value.length : 8;
  return chars;
}

/** An integer of either database as it travels. */
export function toTransferInt(value: bigint | number | string): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** The columns of a table as a load finds them. Throws for those that the backup has and the program does not know. */
export function checkKnown(table: TransferTable, known: readonly TransferTable[]): void {
  const found = known.find(({ name }) => name === table.name);
  if (found === undefined) throw new TransferMismatch(`it has a table ${JSON.stringify(table.name)}`);
  for (const { name, type } of table.columns) {
    const column = found.columns.find((other) => other.name === name);
    if (column?.type === type) continue;
    throw new TransferMismatch(`its table ${table.name} has a column ${JSON.stringify(name)} of ${type}`);
  }
}

/** What is to be loaded is no catalog that this program could have written. */
export class TransferMismatch extends Error {
  constructor(what: string) {
    super(`${what}, which no catalog of that schema has: it was not written by this program, or was changed`);
    this.name = "TransferMismatch";
  }
}

/** Reads the one row of `NUMBERS`. Throws `TransferMismatch` unless it is there and is whole. */
export async function numbersIn(source: TransferSource): Promise<NumbersRow> {
  const table = source.tables.find(({ name }) => name === NUMBERS);
  const rows: TransferRow[] = [];
  if (table !== undefined) for await (const batch of source.rows(NUMBERS)) rows.push(...batch);
  const [row] = rows;
  if (table === undefined || row === undefined) throw new TransferMismatch(`it lacks the table ${NUMBERS}`);
  const entries = NUMBERS_COLUMNS.map((name) => {
    const value = row[table.columns.findIndex((column) => column.name === name)];
    if (typeof value === "number" && value >= 0) return [name, value] as const;
    throw new TransferMismatch(`its table ${NUMBERS} has no number ${name}`);
  });
  return Object.fromEntries(entries) as NumbersRow;
}

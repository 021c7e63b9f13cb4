import type { SQLInputValue, StatementSync } from "node:sqlite";
import { DatabaseSync } from "./driver.ts";

export type Row = Record<string, unknown>;

export type ConnectionOptions = {
  readOnly: boolean;
  /** How long a statement waits for another connection's lock before it fails with SQLITE_BUSY. */
  busyTimeoutMs: number;
};

/** One connection with its prepared statements. Not shared between threads. */
export class Connection {
  readonly db: InstanceType<typeof DatabaseSync>;
  readonly #busyTimeoutMs: number;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string, options: ConnectionOptions) {
    this.#busyTimeoutMs = options.busyTimeoutMs;
    this.db = new DatabaseSync(path, {
      readOnly: options.readOnly,
      timeout: options.busyTimeoutMs,
      enableDoubleQuotedStringLiterals: false,
    });
  }

  /**
   * The statement for a constant text, prepared once. Integers are read as numbers. Parameters are `?` and have no
   * numbers: Node 22.19 takes no values by position for those that have.
   */
  statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      if (/\?\d/.test(sql)) throw new Error(`a parameter has a number: ${sql}`);
      statement = this.db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** The same, with every integer read as a bigint: for columns that go past 2^53. */
  exactStatement(sql: string): StatementSync {
    const statement = this.statement(sql);
    statement.setReadBigInts(true);
    return statement;
  }

  get(sql: string, ...parameters: SQLInputValue[]): Row | undefined {
    return this.statement(sql).get(...parameters);
  }

  all(sql: string, ...parameters: SQLInputValue[]): Row[] {
    return this.statement(sql).all(...parameters);
  }

  run(sql: string, ...parameters: SQLInputValue[]): void {
    this.statement(sql).run(...parameters);
  }

  /** A PRAGMA's single integer. */
  pragma(name: string): number {
    return Number(Object.values(this.db.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
  }

  /**
   * Runs `work` in one transaction that takes the write lock at its start: a transaction that begins by reading could
   * find, when it comes to write, that another process wrote meanwhile, and no waiting would help it.
   */
  write<T>(work: () => T): T {
    return this.#transaction("BEGIN IMMEDIATE", work);
  }

  /** The same, without waiting for another connection's lock: throws SQLITE_BUSY, then, and nothing has happened. */
  writeAtOnce<T>(work: () => T): T {
    this.db.exec("PRAGMA busy_timeout = 0");
    try {
      return this.write(work);
    } finally {
      this.db.exec(`PRAGMA busy_timeout = ${this.#busyTimeoutMs}`);
    }
  }

  /** Runs `work` on one state of the database. */
  read<T>(work: () => T): T {
    return this.#transaction("BEGIN", work);
  }

  #transaction<T>(begin: string, work: () => T): T {
    this.db.exec(begin);
    try {
      const result = work();
      this.db.exec("COMMIT");
      return result;
    } catch (error) {
      // SQLite rolls back by itself after some errors (a full disk, a failed read).
      if (this.db.isTransaction) this.db.exec("ROLLBACK");
      throw error;
    }
  }

  close(): void {
    this.db.close();
  }
}

/** The caller's: it reads, and commits what may be lost with the power until the log has been synced. */
export function configureCaller(connection: Connection): void {
  connection.db.exec("PRAGMA synchronous = NORMAL");
  connection.db.exec("PRAGMA foreign_keys = ON");
  // The writer does that, on its own thread.
  connection.db.exec("PRAGMA wal_autocheckpoint = 0");
}

/** Connections that write: durable when a commit returns, and readers never wait for it. */
export function configureWriter(connection: Connection): void {
  connection.db.exec("PRAGMA synchronous = FULL");
  connection.db.exec("PRAGMA foreign_keys = ON");
  // Without it a burst leaves its largest write-ahead log behind for ever.
  connection.db.exec(`PRAGMA journal_size_limit = ${64 * 1024 * 1024}`);
  // fsync on macOS only hands the bytes to the drive, which may lose them with the power.
  if (process.platform === "darwin") connection.db.exec("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON");
}

import type { Socket } from "node:net";
import postgres from "postgres";
import type { Clock } from "../../core/clock.ts";
import { ConnectionLost, endsSession, NotPrimary } from "./errors.ts";
import { openSocket } from "./socket.ts";
import type { ServerAddress } from "./url.ts";

export type Row = Record<string, unknown>;
/** Integers past 2^53 as text or bigint; JSON and arrays as text. */
export type Parameter = string | number | bigint | null;

export type SessionOptions = {
  clock: Clock;
  /** What opening may take, and what a statement waits for another's lock. */
  connectTimeoutMs: number;
  lockTimeoutMs: number;
  /** Called with what NOTIFY sends to a channel that the session listens to. */
  onNotify?: OnNotify;
};

export type OnNotify = (payload: string) => void;

/**
 * - An answer means durable, whatever the server's default is.
 * - Statements are few and constant, and each has an index that is right for it. Plans are made once and always use
 *   those: to plan the statements of a commit takes as long as running them, and a plan made while a table was small, to
 *   read all of it, would still be used when it is not.
 * - The server ends by itself the session of a node that is gone without a word.
 */
const SESSION = {
  synchronous_commit: "on",
  default_transaction_isolation: "read committed",
  search_path: "engine",
  client_min_messages: "warning",
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
  idle_in_transaction_session_timeout: 10_000,
  tcp_keepalives_idle: 15,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
} as const;

const KEEP_ALIVE_SECONDS = 15;

/**
 * One session with the server, on a socket of its own. postgres.js speaks the protocol; the pool, reconnecting and
 * giving up are ours, so that every call knows on which session it ran and that this one is gone for good when it is.
 */
export class Connection {
  readonly #sql: postgres.Sql;
  readonly #socket: Socket;
  /** How to end the calls that wait for an answer. */
  readonly #waiting = new Set<(reason: ConnectionLost) => void>();
  /** Resolves when the session has ended. */
  readonly closed: Promise<void>;
  #isLost = false;

  private constructor(sql: postgres.Sql, link: Link) {
    this.#sql = sql;
    this.#socket = link.socket;
    // postgres.js forgets calls that it has not sent when the session ends.
    this.closed = link.closed.then((cause) => {
      this.#isLost = true;
      for (const reject of this.#waiting) reject(new ConnectionLost(cause));
    });
  }

  /** Opens a session. Rejects with the system's or the server's error, or `NotPrimary`. */
  static async open(address: ServerAddress, options: SessionOptions): Promise<Connection> {
    const { clock, connectTimeoutMs: timeoutMs } = options;
    const socket = await openSocket(address, { clock, timeoutMs });
    const closed = Promise.withResolvers<Error>();
    const link: Link = { socket, closed: closed.promise };
    const sql = clientOn(address, options, link, () => closed.resolve(new Error("it was closed")));
    try {
      const connection = new Connection(sql, link);
      const [row] = await connection.query("SELECT pg_is_in_recovery() AS standby");
      if (row?.["standby"] === true) throw new NotPrimary();
      return connection;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  /** Whether the session has ended. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Rows by column name: integers of 64 bits are text, NULL is null. Rejects with `ConnectionLost` when it breaks. */
  async query(text: string, parameters: readonly Parameter[] = []): Promise<Row[]> {
    return await this.#guard(this.#sql.unsafe<Row[]>(text, toWire(parameters), PREPARED));
  }

  /** The same with rows as arrays, for answers of very many rows. */
  async values(text: string, parameters: readonly Parameter[] = []): Promise<unknown[][]> {
    return await this.#guard(this.#sql.unsafe<Row[]>(text, toWire(parameters), PREPARED).values());
  }

  /** Several statements in one text, without parameters; all or none of them happen. */
  async script(text: string): Promise<void> {
    await this.#guard(this.#sql.unsafe(text).simple());
  }

  /** Runs reads on one state of the database. What the work sends at once goes with the beginning, in one round trip. */
  async snapshot<T>(work: () => Promise<T>): Promise<T> {
    try {
      const [, result] = await Promise.all([this.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"), work()]);
      return result;
    } finally {
      // Nobody waits for its answer: whatever the session is asked next comes after it.
      if (!this.#isLost) this.script("ROLLBACK").catch(() => this.destroy());
    }
  }

  /** Ends the session in good order. */
  async close(): Promise<void> {
    if (this.#isLost) return;
    await this.#sql.end({ timeout: CLOSE_WITHIN_SECONDS });
    this.#socket.destroy();
  }

  /** Ends it at once; what is under way on it rejects with `ConnectionLost`. */
  destroy(): void {
    this.#isLost = true;
    this.#socket.destroy();
  }

  async #guard<T>(answer: Promise<T>): Promise<T> {
    // Not a race against one promise of the session's end, which would keep every answer for as long as the session.
    const settle = Promise.withResolvers<T>();
    this.#waiting.add(settle.reject);
    answer.then(settle.resolve, settle.reject);
    try {
      return await settle.promise;
    } catch (error) {
      if (error instanceof ConnectionLost) throw error;
      if (!(error instanceof postgres.PostgresError) || endsSession(error)) {
        this.destroy();
        throw new ConnectionLost(error);
      }
      throw error;
    } finally {
      this.#waiting.delete(settle.reject);
    }
  }
}

type Link = { socket: Socket; closed: Promise<Error> };

const PREPARED = { prepare: true, simple: false } as const;
const CLOSE_WITHIN_SECONDS = 5;

// A bigint would be told apart from NULL by its type, and the statement be prepared twice.
function toWire(parameters: readonly Parameter[]): (string | number | null)[] {
  return parameters.map((parameter) => (typeof parameter === "bigint" ? parameter.toString() : parameter));
}

/** A client of postgres.js that can only ever use this socket. */
function clientOn(
  address: ServerAddress,
  { connectTimeoutMs, lockTimeoutMs, onNotify }: SessionOptions,
  { socket }: Link,
  onClose: () => void,
): postgres.Sql {
  let isTaken = false;
  const options = {
    host: address.host,
    port: address.port,
    database: address.database,
    user: address.user,
    password: address.password ?? "",
    // The socket is encrypted already.
    ssl: false,
    max: 1,
    fetch_types: false,
    prepare: true,
    idle_timeout: undefined,
    max_lifetime: null,
    keep_alive: KEEP_ALIVE_SECONDS,
    connect_timeout: connectTimeoutMs / 1_000,
    connection: { ...SESSION, application_name: address.applicationName, lock_timeout: lockTimeoutMs },
    onnotice: () => undefined,
    onnotify: (_channel: string, payload: string) => onNotify?.(payload),
    onclose: onClose,
    socket: () => {
      if (isTaken || socket.destroyed) throw new Error("the server closed the connection");
      isTaken = true;
      return socket;
    },
  };
  return postgres(options);
}

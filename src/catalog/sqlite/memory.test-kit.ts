import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { Connection } from "../../db/sqlite/connection.ts";
import { toDatabaseError } from "../../db/sqlite/errors.ts";
import { MIGRATIONS } from "../migrations.test-kit.ts";
import { makeFirstSnapshot } from "./snapshots.ts";
import { migrate } from "../../db/sqlite/migrate.ts";
import { schemaNumbersOf } from "../transfer/schema-numbers.ts";
import { sqliteUpkeep } from "../../db/sqlite/open.ts";
import { Reader } from "./reader.ts";
import { SqliteCatalog } from "./sqlite-catalog.ts";
import type { PartClient } from "../../db/sqlite/thread-client.ts";
import { Writer } from "./writer.ts";

/**
 * The catalog in memory, all of it on the caller's thread: every call is done when it returns, and its promise settles
 * without anything real to wait for. For simulations, which also look at the one connection that there is, and for tests
 * that open one each: the threads of the other take a third of a second to start.
 */
export function openMemoryCatalog(clock: Clock): { catalog: SqliteCatalog; connection: Connection } {
  const path = ":memory:";
  const open = { path, busyTimeoutMs: 0 };
  const connection = new Connection(path, { readOnly: false, busyTimeoutMs: 0 });
  connection.db.exec("PRAGMA foreign_keys = ON");
  const found = migrate(connection, {
    path,
    nowMs: clock.nowMs(),
    mayUpgrade: true,
    migrations: MIGRATIONS,
    seed: makeFirstSnapshot,
  });
  const parts = {
    open,
    lock: undefined,
    local: connection,
    log: { sync: async () => {}, close: () => {} },
    writer: new InlinePart(new Writer(connection)),
    reader: new InlinePart(new Reader(connection)),
    schema: schemaNumbersOf(MIGRATIONS),
    openVerifier: async () => new InlinePart(new Reader(connection)),
    upkeep: sqliteUpkeep(MIGRATIONS, found),
  };
  return { catalog: new SqliteCatalog(parts, clock), connection };
}

type Call = (...args: readonly unknown[]) => unknown;

/** What a thread does, without one. */
class InlinePart<Api extends object> implements PartClient<Api> {
  readonly #api: Api;
  #failure: Error | undefined;

  constructor(api: Api) {
    this.#api = api;
  }

  readonly call: PartClient<Api>["call"] = async (method, ...args) => {
    return this.#do(() => this.#method(method).apply(this.#api, args)) as never;
  };

  readonly stream: PartClient<Api>["stream"] = async (method, args, onPart) => {
    this.#do(() => {
      for (const part of this.#method(method).apply(this.#api, args) as Iterable<never>) onPart(part);
    });
  };

  // The connection is not its own.
  async close(): Promise<void> {}

  async terminate(): Promise<void> {}

  fail(reason: Error): void {
    this.#failure ??= reason;
  }

  #method(name: string): Call {
    return Reflect.get(this.#api, name) as Call;
  }

  #do(work: () => unknown): unknown {
    if (this.#failure !== undefined) throw new EngineError("unavailable", this.#failure.message);
    try {
      return work();
    } catch (error) {
      throw toDatabaseError(error, ":memory:");
    }
  }
}

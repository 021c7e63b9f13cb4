import type { AuditLog, Origin } from "../../auth/audit.ts";
import type { Caller } from "../../auth/caller.ts";
import { withTimeLimit, type Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { NOW, type RecordRow, type RecordStore } from "../../db/records.ts";
import type { EngineRequest, EngineRun, QueryEngines } from "../contract/engines.ts";
import type { EnginePlace, EnginePort, EngineSecret } from "./port.ts";

/** The kinds of query engines that there are. */
export const ENGINE_KINDS = ["trino"] as const;
export type EngineKind = (typeof ENGINE_KINDS)[number];

/** One that an admin has named. */
export type NamedEngine = NewEngine & { createdBy: string; createdAtMs: number };

export type NewEngine = {
  name: string;
  kind: EngineKind;
  /** Without a path. */
  url: string;
  /** Of that engine: where names of tables without one are looked up. */
  catalog: string;
  /** Who this program is there; what the credential says, or `engine`, when undefined. */
  user: string | undefined;
  credentialId: string | undefined;
};

/** What a credential is for an engine; undefined for one of a kind that is of no use there. */
export type EngineKey = { secret: EngineSecret; user?: string | undefined };

/** The credentials that admins may give to engines. */
export interface EngineKeys {
  /** Throws `not_found`, and `bad_request_body` for one that is of no use to an engine. */
  check(id: string, caller: Caller): Promise<void>;
  /** Throws `not_found` for one that is not there any more. */
  open(id: string): Promise<EngineKey>;
}

export type EngineRegistryOptions = {
  records: RecordStore;
  audit: AuditLog;
  keys: EngineKeys;
  clock: Clock;
  log: Log;
};

type AdminOrigin = Origin & { caller: Caller };

const DEFAULT_USER = "engine";
const TEST_MS = 15_000;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/**
 * The query engines of others that admins have named, and what runs there. An engine sees what its own credential lets it
 * see, whoever asks; so only admins of all databases name one, and only callers of all databases send it anything
 * (`remote-queries.ts`).
 */
export class EngineRegistry implements QueryEngines {
  readonly #options: EngineRegistryOptions;

  constructor(options: EngineRegistryOptions) {
    this.#options = options;
  }

  /** In the order of their names. */
  async list(): Promise<NamedEngine[]> {
    const rows = await this.#options.records.rows("SELECT * FROM query_engines ORDER BY name", []);
    return rows.map(toEngine);
  }

  async names(): Promise<string[]> {
    return (await this.list()).map(({ name }) => name);
  }

  /** Throws `conflict` for a name that is taken, and as `EngineKeys.check`. The engine is not asked: see `test`. */
  async add(engine: NewEngine, origin: AdminOrigin): Promise<NamedEngine> {
    const { records, audit, keys } = this.#options;
    checkPlace(engine);
    if (engine.credentialId !== undefined) await keys.check(engine.credentialId, origin.caller);
    const { name, kind, url, catalog, user, credentialId } = engine;
    const sql =
      "INSERT INTO query_engines (name, kind, url, default_catalog, user_name, credential_id, created_by, created_at_ms) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING name";
    const values = [name, kind, url, catalog, user ?? null, credentialId ?? null, origin.caller.subject, NOW];
    const details = { kind, url, catalog, credential_id: credentialId ?? null };
    const outcome = await records.transact([
      { sql, values, mustReturn: 1 },
      audit.statement({ origin, action: "query_engine.add", target: name, outcome: "ok", details }),
    ]);
    if (!outcome.done) throw new EngineError("conflict", `there is a query engine ${name} already: remove it first`);
    return await this.find(name);
  }

  /** Throws `not_found`. What it runs for somebody now runs on. */
  async remove(name: string, origin: AdminOrigin): Promise<void> {
    const { records, audit } = this.#options;
    const outcome = await records.transact([
      { sql: "DELETE FROM query_engines WHERE name = ? RETURNING name", values: [name], mustReturn: 1 },
      audit.statement({ origin, action: "query_engine.remove", target: name, outcome: "ok" }),
    ]);
    if (!outcome.done) throw await this.#notFound(name);
  }

  /** Throws `not_found`, and which there are. */
  async find(name: string): Promise<NamedEngine> {
    const engine = await this.#lookUp(name);
    if (engine !== undefined) return engine;
    throw await this.#notFound(name);
  }

  /** Has the engine answer `SELECT 1`. Rejects with `engine_failed` and what is wrong, `engine_timeout`, `not_found`. */
  async test(name: string, origin: AdminOrigin, signal: AbortSignal): Promise<{ elapsedMs: number }> {
    const { clock } = this.#options;
    const startedMs = clock.monotonicMs();
    const late = (): Error =>
      new EngineError("engine_timeout", `the query engine did not answer within ${TEST_MS / 1_000} s`);
    await withTimeLimit(clock, { ms: TEST_MS, late, signal }, async (inTime) => {
      // A schema that every catalog has.
      const asked = { engine: name, text: "SELECT 1", database: "information_schema", ...origin, signal: inTime };
      const { pages } = await this.begin(asked);
      let rows = 0;
      for await (const page of pages) rows += page.rows.length;
      if (rows !== 1) throw new EngineError("engine_failed", `the query engine answers SELECT 1 with ${rows} rows`);
    });
    return { elapsedMs: Math.round(clock.monotonicMs() - startedMs) };
  }

  async begin({ engine: name, text, database, ...request }: EngineRequest): Promise<EngineRun> {
    const engine = await this.find(name);
    const { caller, address, requestId, signal } = request;
    const port = await this.#open(engine, { caller, address, requestId });
    const statement = {
      text,
      catalog: engine.catalog,
      schema: database,
      onBehalfOf: caller.subject,
      requestId,
      signal,
    };
    return await port.begin(statement);
  }

  async cancel(name: string, queryId: string): Promise<void> {
    const engine = await this.#lookUp(name);
    if (engine === undefined) return;
    const origin = { caller: { subject: "engine", kind: "internal" } as const, address: "", requestId: "" };
    await (await this.#open(engine, origin)).cancel(queryId);
  }

  async #lookUp(name: string): Promise<NamedEngine | undefined> {
    if (name.includes("\0")) return undefined;
    const [row] = await this.#options.records.rows("SELECT * FROM query_engines WHERE name = ?", [name]);
    return row === undefined ? undefined : toEngine(row);
  }

  async #open(engine: NamedEngine, origin: Origin): Promise<EnginePort> {
    const { clock, log } = this.#options;
    const place = await this.#placeOf(engine, origin);
    const { TrinoClient } = await import("./trino/client.ts");
    return new TrinoClient({ place, clock, log });
  }

  /** The use of a credential is on record before it is used. */
  async #placeOf({ name, url, user, credentialId }: NamedEngine, origin: Origin): Promise<EnginePlace> {
    if (credentialId === undefined) return { url, user: user ?? DEFAULT_USER, secret: undefined };
    const { keys, audit } = this.#options;
    const key = await keys.open(credentialId);
    const details = { query_engine: name };
    await audit.record({ origin, action: "credential.use", target: credentialId, outcome: "ok", details });
    return { url, user: user ?? key.user ?? DEFAULT_USER, secret: key.secret };
  }

  async #notFound(name: string): Promise<EngineError> {
    const names = await this.names();
    const known = names.length === 0 ? "none has been added" : `there are: ${names.join(", ")}`;
    return new EngineError("not_found", `there is no query engine ${JSON.stringify(name.slice(0, 100))}; ${known}`);
  }
}

/** A secret goes over a line that nobody reads along, or stays on this machine. */
function checkPlace({ url, credentialId }: NewEngine): void {
  const { protocol, hostname } = new URL(url);
  if (credentialId === undefined || protocol === "https:" || LOOPBACK.test(hostname)) return;
  throw new EngineError("bad_request_body", "url: must be https, because a credential is sent to it");
}

function toEngine(row: RecordRow): NamedEngine {
  return {
    name: String(row["name"]),
    kind: "trino",
    url: String(row["url"]),
    catalog: String(row["default_catalog"]),
    user: textIn(row["user_name"]),
    credentialId: textIn(row["credential_id"]),
    createdBy: String(row["created_by"]),
    createdAtMs: Number(row["created_at_ms"]),
  };
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

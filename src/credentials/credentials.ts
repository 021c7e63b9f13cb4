import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../db/records.ts";
import type { AuditAction, AuditLog, Origin } from "../auth/audit.ts";
import { scopeOfColumn, scopeToColumn } from "../auth/stored-caller.ts";
import { scopeIncludes, type Caller, type Scope } from "../auth/caller.ts";
import { mayReachWithin, ownerFilterWithin, ownerOf, type Asker } from "../auth/owner.ts";
import { EngineError } from "../core/errors.ts";
import { neededKeyring } from "./needed-keyring.ts";
import type { IdSource } from "../core/ids.ts";
import type { Random } from "../core/random.ts";
import { CannotOpen, open, seal, sealAnew, type Envelope } from "../auth/sealing/envelope.ts";
import type { Keyring } from "../auth/sealing/keyring.ts";
import { credentialValue, previewOf, type CredentialKind, type CredentialValue } from "./kinds.ts";

/**
 * Typed secrets for data sources and agents. The values are sealed (`envelope.ts`) and opened only by `reveal`, for
 * whoever runs a job that names the credential, and by no route for callers. A credential belongs to who made it, and
 * to the databases of that caller: of those whose own databases include all of these, the owner and admins reach it, and
 * everybody uses it where it is shared.
 */
export type Credential = {
  id: string;
  label: string;
  kind: CredentialKind;
  preview: string;
  metadata: Readonly<Record<string, unknown>>;
  databases: Scope;
  status: CredentialStatus;
  /** Of a status that is not `ok`: why. */
  statusDetail: string | undefined;
  owner: string;
  /** Whether others may use it, whom it shows and tells nothing secret. */
  shared: boolean;
  createdBy: string;
  createdAtMs: number;
  updatedAtMs: number;
  /** When the value ends, as far as that is known. */
  expiresAtMs: number | undefined;
};

/** `refresh_failed`: the provider would not renew it; somebody must connect again. */
export type CredentialStatus = "ok" | "refresh_failed";

export type NewCredential = {
  label: string;
  value: CredentialValue;
  metadata?: Readonly<Record<string, unknown>> | undefined;
  shared?: boolean | undefined;
};

/** An opened value with the version it has: a change says which it replaces. */
export type Revealed = { credential: Credential; value: CredentialValue; version: number };

export type CredentialsOptions = {
  records: RecordStore;
  newId: IdSource;
  random: Random;
  audit: AuditLog;
  /** Undefined where the operator set no key. */
  keyring: Keyring | undefined;
};

/** More than any list shows. */
const MAX_LISTED = 1_000;
const ROTATED_AT_ONCE = 100;

export class Credentials {
  readonly #options: CredentialsOptions;

  constructor(options: CredentialsOptions) {
    this.#options = options;
  }

  /**
   * `along` are statements of the same transaction, given the new id. Throws `not_configured` without a key, `conflict`
   * when one of those does not return what it must.
   */
  async create(
    request: NewCredential,
    origin: Origin & { caller: Caller },
    along: (id: string) => readonly Statement[] = () => [],
  ): Promise<Credential> {
    const { records, newId, random } = this.#options;
    const keyring = this.#keyring();
    const { label, value, metadata = {}, shared = false } = request;
    const id = newId();
    const envelope = seal(keyring, random, subjectOf(id, value.kind), JSON.stringify(value));
    const { databases, subject } = origin.caller;
    const sql =
      "INSERT INTO credentials (id, label, kind, preview, metadata, databases, status, version, key_id, sealed_key, " +
      "sealed_value, owner, shared, created_by, created_at_ms, updated_at_ms, expires_at_ms) " +
      "VALUES (?, ?, ?, ?, ?, ?, 'ok', 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    const shown = [id, label, value.kind, previewOf(value), JSON.stringify(metadata), scopeToColumn(databases)];
    const owned = [ownerOf(origin.caller), shared ? 1 : 0, subject];
    const values = [...shown, ...columnsOf(envelope), ...owned, NOW, NOW, expiryOf(value)];
    const outcome = await records.transact([
      { sql, values },
      this.#entry("credential.create", id, origin, { label, kind: value.kind }),
      ...along(id),
    ]);
    if (!outcome.done) throw new EngineError("conflict", "what the credential was made for has changed meanwhile");
    const found = await this.#find(id);
    if (found === undefined) throw new EngineError("not_found", "the credential was deleted in this moment");
    return toCredential(found);
  }

  /** Newest first, those that the caller may use. */
  async list(caller: Asker): Promise<Credential[]> {
    this.#keyring();
    const others = ownerFilterWithin(caller) === undefined ? "owner <> ?" : "owner <> ? AND shared = 1";
    // However many others share, the caller's own are among them.
    const found = await Promise.all(
      ["owner = ?", others].map(async (which) => {
        const sql = `SELECT * FROM credentials WHERE ${which} ORDER BY id DESC LIMIT ?`;
        return await this.#options.records.rows(sql, [ownerOf(caller), MAX_LISTED]);
      }),
    );
    const usable = found
      .flat()
      .map(toCredential)
      .filter((credential) => mayUse(caller, credential));
    return usable.toSorted((a, b) => (a.id < b.id ? 1 : -1));
  }

  /** One that the caller may use. Throws `not_found` for all others. */
  async get(id: string, caller: Asker): Promise<Credential> {
    this.#keyring();
    return toCredential(await this.#usable(id, caller));
  }

  /** Throws `not_found` also for one that the caller may use, but not change. */
  async remove(id: string, origin: Origin & { caller: Caller }): Promise<void> {
    this.#keyring();
    await this.#reached(id, origin.caller);
    const outcome = await this.#options.records.transact([
      { sql: "DELETE FROM credentials WHERE id = ? RETURNING id", values: [id], mustReturn: 1 },
      this.#entry("credential.delete", id, origin),
    ]);
    if (!outcome.done) throw notFound(id);
  }

  /** Says whether others may use it. Throws `not_found` also for one that the caller may use, but not change. */
  async share(id: string, shared: boolean, origin: Origin & { caller: Caller }): Promise<Credential> {
    this.#keyring();
    await this.#reached(id, origin.caller);
    const outcome = await this.#options.records.transact([
      {
        sql: "UPDATE credentials SET shared = ?, updated_at_ms = ? WHERE id = ? RETURNING id",
        values: [shared ? 1 : 0, NOW, id],
        mustReturn: 1,
      },
      this.#entry("credential.share", id, origin, { shared: shared ? "on" : "off" }),
    ]);
    if (!outcome.done) throw notFound(id);
    return await this.get(id, origin.caller);
  }

  /**
   * The value, for whoever uses it on behalf of the caller: into memory, and nowhere else. Throws `not_found`, and an
   * `EngineError` without any part of the value when it does not open.
   */
  async reveal(id: string, caller: Asker): Promise<Revealed> {
    const keyring = this.#keyring();
    const row = await this.#usable(id, caller);
    const credential = toCredential(row);
    try {
      const text = open(keyring, subjectOf(id, credential.kind), envelopeOf(row));
      return { credential, value: credentialValue.parse(JSON.parse(text)), version: Number(row["version"]) };
    } catch (error) {
      const reason = error instanceof CannotOpen ? error.message : "its content is damaged";
      throw new EngineError("internal", `the credential ${id} cannot be opened: ${reason}`);
    }
  }

  /** Replaces a value that has that version; resolves to whether it had. */
  async replace(id: string, version: number, value: CredentialValue, origin: Origin): Promise<boolean> {
    const { records, random } = this.#options;
    const envelope = seal(this.#keyring(), random, subjectOf(id, value.kind), JSON.stringify(value));
    const sql =
      "UPDATE credentials SET key_id = ?, sealed_key = ?, sealed_value = ?, preview = ?, expires_at_ms = ?, " +
      "status = 'ok', status_detail = NULL, version = version + 1, updated_at_ms = ? " +
      "WHERE id = ? AND version = ? AND kind = ? RETURNING id";
    const values = [...columnsOf(envelope), previewOf(value), expiryOf(value), NOW, id, version, value.kind];
    const outcome = await records.transact([
      { sql, values, mustReturn: 1 },
      this.#entry("credential.refresh", id, origin),
    ]);
    return outcome.done;
  }

  /** Says that a credential is of no use until somebody connects it again. `detail` holds no secret. */
  async markFailed(id: string, version: number, detail: string, origin: Origin): Promise<void> {
    const sql =
      "UPDATE credentials SET status = 'refresh_failed', status_detail = ?, updated_at_ms = ? " +
      "WHERE id = ? AND version = ? RETURNING id";
    const entry = { origin, action: "credential.refresh", target: id, outcome: "failed", details: { detail } } as const;
    await this.#options.records.transact([
      { sql, values: [detail, NOW, id, version], mustReturn: 1 },
      this.#options.audit.statement(entry),
    ]);
  }

  /** Seals all records for the current key; resolves to how many it was and which could not be opened. */
  async rotate(origin: Origin): Promise<{ rotated: number; failed: string[] }> {
    const { records, random } = this.#options;
    const keyring = this.#keyring();
    const failed: string[] = [];
    for (let rotated = 0, after = ""; ;) {
      const sql = "SELECT * FROM credentials WHERE key_id <> ? AND id > ? ORDER BY id LIMIT ?";
      const rows = await records.rows(sql, [keyring.current.id, after, ROTATED_AT_ONCE]);
      for (const row of rows) {
        const id = String(row["id"]);
        after = id;
        try {
          const envelope = sealAnew(keyring, random, subjectOf(id, toCredential(row).kind), envelopeOf(row));
          if (await this.#reseal(id, Number(row["version"]), envelope)) rotated++;
        } catch (error) {
          if (!(error instanceof CannotOpen)) throw error;
          failed.push(id);
        }
      }
      if (rows.length > 0) continue;
      const details = { rotated, failed: failed.length, key: keyring.current.id };
      const outcome = failed.length === 0 ? "ok" : "failed";
      await this.#options.audit.record({ origin, action: "credential.rotate", target: "", outcome, details });
      return { rotated, failed };
    }
  }

  async #reseal(id: string, version: number, { keyId, sealedKey }: Envelope): Promise<boolean> {
    // Whoever replaced the value meanwhile sealed it with the current key.
    const sql = "UPDATE credentials SET key_id = ?, sealed_key = ? WHERE id = ? AND version = ? RETURNING id";
    return (await this.#options.records.transact([{ sql, values: [keyId, sealedKey, id, version], mustReturn: 1 }]))
      .done;
  }

  #keyring(): Keyring {
    return neededKeyring(this.#options.keyring);
  }

  async #usable(id: string, caller: Asker): Promise<RecordRow> {
    const row = await this.#find(id);
    if (row === undefined || !mayUse(caller, toCredential(row))) throw notFound(id);
    return row;
  }

  async #reached(id: string, caller: Asker): Promise<void> {
    const row = await this.#find(id);
    if (row === undefined || !mayChange(caller, toCredential(row))) throw notFound(id);
  }

  async #find(id: string): Promise<RecordRow | undefined> {
    if (id.includes("\0")) return undefined;
    const [row] = await this.#options.records.rows("SELECT * FROM credentials WHERE id = ?", [id]);
    return row;
  }

  #entry(action: AuditAction, target: string, origin: Origin, details: Record<string, string> = {}) {
    return this.#options.audit.statement({ origin, action, target, outcome: "ok", details });
  }
}

/** Whether the caller may have it used for them. */
function mayUse(caller: Asker, { owner, shared, databases }: Credential): boolean {
  return (shared || mayReachWithin(caller, owner)) && scopeIncludes(caller.databases, databases);
}

/** Whether the caller may see all of it but its secret, and change and delete it. */
export function mayChange(caller: Asker, { owner, databases }: Credential): boolean {
  return mayReachWithin(caller, owner) && scopeIncludes(caller.databases, databases);
}

/** What a sealed value belongs to. */
function subjectOf(id: string, kind: string): string {
  return `credential ${id} ${kind}`;
}

function columnsOf({ keyId, sealedKey, sealedValue }: Envelope): string[] {
  return [keyId, sealedKey, sealedValue];
}

function envelopeOf(row: RecordRow): Envelope {
  return {
    keyId: String(row["key_id"]),
    sealedKey: String(row["sealed_key"]),
    sealedValue: String(row["sealed_value"]),
  };
}

function expiryOf(value: CredentialValue): RecordValue {
  return value.kind === "oauth2" && value.expires_at !== undefined ? Date.parse(value.expires_at) : null;
}

function toCredential(row: RecordRow): Credential {
  const [detail, expires] = [row["status_detail"], row["expires_at_ms"]];
  return {
    id: String(row["id"]),
    label: String(row["label"]),
    kind: String(row["kind"]) as CredentialKind,
    preview: String(row["preview"]),
    metadata: JSON.parse(String(row["metadata"])) as Record<string, unknown>,
    databases: scopeOfColumn(row["databases"]),
    status: row["status"] === "refresh_failed" ? "refresh_failed" : "ok",
    statusDetail: typeof detail === "string" ? detail : undefined,
    owner: String(row["owner"]),
    shared: Number(row["shared"]) === 1,
    createdBy: String(row["created_by"]),
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
    expiresAtMs: expires === null ? undefined : Number(expires),
  };
}

function notFound(id: string): EngineError {
  return new EngineError("not_found", `there is no credential ${JSON.stringify(id.slice(0, 100))}`);
}

import { checkMayUse, type Caller } from "../../auth/caller.ts";
import type { AuditLog, Origin } from "../../auth/audit.ts";
import { ownerOf } from "../../auth/owner.ts";
import type { Catalog, DatabaseRecord } from "../../catalog/catalog.ts";
import { EngineError } from "../../core/errors.ts";
import { foldName } from "../../core/names.ts";
import type { IdSource } from "../../core/ids.ts";
import type { RecordStore } from "../../db/records.ts";
import type { RecordKey } from "./draft.ts";
import type { Embedding } from "./embed/embedding.ts";
import { importRecords, type ImportResult } from "./import.ts";
import { accepted, edgeInput, nodeInput } from "./input.ts";
import { erase, invalidate, notInMemory, restore } from "./life.ts";
import { MEMORY_LIMITS } from "./limits.ts";
import type { MemoryMetrics } from "./metrics.ts";
import type { EdgeRecord, NodeRecord } from "./model.ts";
import { checkRealm, maySee, realmRights, type RealmRights } from "./realms.ts";
import type { RecordKind, StoredVersion, Version } from "./rows.ts";
import { checkEnd, endsInMemory, nodeKey, saveEdge, saveNode, type Saved } from "./save.ts";
import { readSettings, writeSettings, type MemorySettings } from "./settings.ts";
import type { CountRow, MemoryStore } from "./store.ts";
import { validAt } from "./validity.ts";
import type { MemoryWriter, Operation } from "./writer.ts";

/** Who asks, and for the memory of which database. */
export type MemoryScope = { databaseId: number; rights: RealmRights; caller: Caller };

/** A moment to look back to: what held then, as far as it was known then; now unless given. */
export type Moment = { asOfUs?: number | undefined; knownAtUs?: number | undefined };

export type ChangesPage = { versions: StoredVersion[]; untilUs: number; hasMore: boolean };

export type MemoryOverview = { counts: CountRow[]; firehoseRows: number };

export type MemoryServiceDeps = {
  catalog: Pick<Catalog, "database" | "createDatabase" | "table" | "tableStats">;
  records: RecordStore;
  store: MemoryStore;
  writer: MemoryWriter;
  audit: AuditLog;
  newId: IdSource;
  metrics: MemoryMetrics;
  /** What may keep a write waiting before it is acknowledged. */
  embedding?: Pick<Embedding, "afterWrite"> | undefined;
};

/** Where raw observations go, by ordinary ingest. */
export const FIREHOSE_TABLE = "firehose";

const DEFAULT_DATABASE = "default";
const EXPORTED_AT_ONCE = 500;

/** The memories of all databases, for routes, tools and agents alike. What was not acknowledged may have happened. */
export class MemoryService {
  readonly #deps: MemoryServiceDeps;

  constructor(deps: MemoryServiceDeps) {
    this.#deps = deps;
  }

  /** Throws `forbidden`, `database_not_found`. */
  async scope(caller: Caller, database: string): Promise<MemoryScope> {
    checkMayUse(caller, database);
    const { id: databaseId } = await this.#existing(database);
    return { databaseId, rights: realmRights(caller), caller };
  }

  /** The one that everybody has by default is made when it is first asked for, as by the first rows of a table. */
  async #existing(name: string): Promise<DatabaseRecord> {
    const { catalog } = this.#deps;
    const found = await catalog.database(name);
    if (found !== undefined) return found;
    if (foldName(name) === DEFAULT_DATABASE) return (await catalog.createDatabase(DEFAULT_DATABASE)).database;
    throw new EngineError("database_not_found", `database ${JSON.stringify(name)} does not exist`);
  }

  /** Saves a memory or an entity; `fields` have the names of the wire. Throws `bad_request_body`, `forbidden`. */
  async saveNode({ databaseId, rights }: MemoryScope, fields: unknown): Promise<Saved<NodeRecord>> {
    const operation = saveNode(accepted(nodeInput, fields), rights, this.#deps.newId);
    const saved = this.#noted(await this.#deps.writer.write(databaseId, operation));
    await this.#deps.embedding?.afterWrite();
    return saved;
  }

  /** Saves an edge; both ends must be there. Throws `bad_request_body`, `forbidden`, `not_found`. */
  async saveEdge({ databaseId, rights }: MemoryScope, fields: unknown): Promise<Saved<EdgeRecord>> {
    const input = accepted(edgeInput, fields);
    const ends: NodeRecord[] = [];
    for (const id of endsInMemory(input)) {
      const found = await this.#deps.store.current(databaseId, nodeKey(id));
      ends.push(checkEnd(found?.kind === "node" && !found.erased ? found.record : undefined, id, rights));
    }
    return this.#noted(await this.#deps.writer.write(databaseId, saveEdge(input, ends, rights)));
  }

  /** The version of a node or an edge that is current, or was at the moment. Throws `not_found`. */
  async get(scope: MemoryScope, key: RecordKey, moment: Moment = {}): Promise<NodeRecord | EdgeRecord> {
    const found = isNow(moment)
      ? await this.#deps.store.current(scope.databaseId, key)
      : await this.#at(scope, key, moment);
    return visible(found, scope, key).record;
  }

  /** The current versions of those nodes that the caller may see. */
  async nodes({ databaseId, rights }: MemoryScope, ids: readonly string[]): Promise<NodeRecord[]> {
    const known = await this.#deps.store.known(databaseId, "node", ids);
    return known.flatMap(({ current }) =>
      current?.kind === "node" && !current.erased && maySee(rights, current.record.realm) ? [current.record] : [],
    );
  }

  /** All versions, the newest first. Throws `not_found`, also for what was erased. */
  async history(scope: MemoryScope, key: RecordKey): Promise<StoredVersion[]> {
    const { databaseId } = scope;
    visible(await this.#deps.store.current(databaseId, key), scope, key);
    const versions = await this.#deps.store.versions(databaseId, key, MEMORY_LIMITS.historyVersions);
    return versions.filter(({ erased }) => !erased);
  }

  /** Says that a record does not hold any more, or since when. What is invalidated already stays as it is. */
  async invalidate(
    { databaseId, rights, caller }: MemoryScope,
    key: RecordKey,
    { reason, validToUs }: { reason?: string | undefined; validToUs?: number | undefined } = {},
  ): Promise<NodeRecord | EdgeRecord> {
    const operation = invalidate({ key, by: ownerOf(caller), reason, validToUs }, rights);
    return await this.#counted("invalidated", databaseId, operation);
  }

  /** Takes an invalidation back. */
  async restore({ databaseId, rights }: MemoryScope, key: RecordKey): Promise<NodeRecord | EdgeRecord> {
    return await this.#counted("restored", databaseId, restore(key, rights));
  }

  /** Erases all versions of a record, and a node's edges; resolves to how many records were erased. */
  async erase({ databaseId, rights }: MemoryScope, key: RecordKey, origin: Origin): Promise<number> {
    const entry = {
      origin,
      action: "memory.erase",
      target: key.id,
      outcome: "ok",
      details: { kind: key.kind },
    } as const;
    return await this.#counted("erased", databaseId, erase(key, rights, [this.#deps.audit.statement(entry)]));
  }

  /** Applies all records, or none: see `import.ts`. */
  async import(
    { databaseId, rights }: MemoryScope,
    records: { memory_nodes: readonly unknown[]; memory_edges: readonly unknown[] },
  ): Promise<ImportResult> {
    const result = await this.#deps.writer.write(databaseId, importRecords(records, rights, this.#deps.newId));
    for (const counts of [result.nodes, result.edges]) {
      for (const [outcome, count] of Object.entries(counts)) this.#deps.metrics.changes.inc({ outcome }, count);
    }
    await this.#deps.embedding?.afterWrite();
    return result;
  }

  /** Commits what another part of this program plans, which has checked what it may. Throws as `MemoryWriter.write`. */
  async commit<T>(databaseId: number, operation: Operation<T>): Promise<T> {
    const value = await this.#deps.writer.write(databaseId, operation);
    await this.#deps.embedding?.afterWrite();
    return value;
  }

  /** All current versions of a kind, and tombstones, that the caller may see; in pages, by id. */
  async *export({ databaseId, rights }: MemoryScope, kind: RecordKind): AsyncGenerator<StoredVersion[]> {
    for (let after = ""; ;) {
      const page = await this.#deps.store.page(databaseId, kind, { after, limit: EXPORTED_AT_ONCE, rights });
      const last = page.at(-1);
      if (last === undefined) return;
      after = last.record.id;
      yield page;
    }
  }

  /**
   * Current versions, and tombstones, whose stamp is after `sinceUs`, of one realm or of all that the caller may see. A
   * page ends with a whole commit; what comes after it is after `untilUs`.
   */
  async changes(
    { databaseId, rights }: MemoryScope,
    { sinceUs, realm, limit = MEMORY_LIMITS.changesItems }: { sinceUs?: number; realm?: string; limit?: number },
  ): Promise<ChangesPage> {
    if (realm !== undefined) checkRealm(rights, realm);
    const { store } = this.#deps;
    const head = await store.head(databaseId);
    const afterSeq = sinceUs === undefined ? 0 : await store.seqAt(databaseId, sinceUs);
    const range = { afterSeq, throughSeq: head.seq, limit, rights, realm };
    const { versions, seq, hasMore } = await store.changed(databaseId, range);
    const untilUs = hasMore ? await store.stampOf(databaseId, seq) : head.stampUs;
    return { versions, untilUs, hasMore };
  }

  async overview({ databaseId, rights }: MemoryScope, database: string): Promise<MemoryOverview> {
    const { catalog, store } = this.#deps;
    const firehose = await catalog.table(database, FIREHOSE_TABLE);
    const stats = firehose === undefined ? undefined : await catalog.tableStats(firehose.id);
    return { counts: await store.counts(databaseId, rights), firehoseRows: stats?.rows ?? 0 };
  }

  async settings({ databaseId }: MemoryScope): Promise<MemorySettings> {
    return await readSettings(this.#deps.records, databaseId);
  }

  /** Replaces all settings: what is not given has its default again. */
  async changeSettings({ databaseId }: MemoryScope, database: string, settings: MemorySettings, origin: Origin) {
    const entry = { origin, action: "memory.settings", target: database, outcome: "ok" } as const;
    const details = { settings: JSON.stringify(settings) };
    await this.#deps.records.transact([
      writeSettings(databaseId, settings),
      this.#deps.audit.statement({ ...entry, details }),
    ]);
  }

  async #at(scope: MemoryScope, key: RecordKey, { asOfUs, knownAtUs }: Moment): Promise<StoredVersion | undefined> {
    const { store } = this.#deps;
    const { databaseId } = scope;
    const all = await store.versions(databaseId, key, MEMORY_LIMITS.historyVersions);
    const knownSeq = knownAtUs === undefined ? Infinity : await store.seqAt(databaseId, knownAtUs);
    const recorded = all.filter(({ seq }) => seq <= knownSeq);
    if (asOfUs === undefined) return recorded.find(({ endedSeq = Infinity }) => endedSeq > knownSeq);
    const alive = recorded.flatMap((version) => (version.erased ? [] : [{ ...lifeOf(version.record), version }]));
    return validAt(alive, asOfUs)?.version;
  }

  #noted<R>(saved: Saved<R>): Saved<R> {
    this.#deps.metrics.changes.inc({ outcome: saved.outcome });
    return saved;
  }

  async #counted<T>(outcome: string, databaseId: number, operation: Operation<T>): Promise<T> {
    const result = await this.#deps.writer.write(databaseId, operation);
    this.#deps.metrics.changes.inc({ outcome });
    return result;
  }
}

function isNow({ asOfUs, knownAtUs }: Moment): boolean {
  return asOfUs === undefined && knownAtUs === undefined;
}

function lifeOf({ validFromUs, validToUs, originUpdatedAtUs, contentHash }: NodeRecord | EdgeRecord) {
  return { validFromUs, validToUs, originUpdatedAtUs, contentHash };
}

/** Throws `not_found` also for a record that was erased, and for one that the caller may not see. */
function visible(
  version: Version | undefined,
  { rights }: MemoryScope,
  key: RecordKey,
): Exclude<Version, { erased: true }> {
  if (version === undefined || version.erased || !maySee(rights, version.record.realm)) throw notInMemory(key);
  return version;
}

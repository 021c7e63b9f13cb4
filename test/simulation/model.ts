import type { Catalog } from "../../src/catalog/catalog.ts";
import type { Connection } from "../../src/db/sqlite/connection.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import type { IngestAck } from "../../src/ingest/ingest.ts";
import { objectKeys } from "../../src/io/objectstore/objectstore.ts";
import { isNeeded, readCatalog, type CatalogExtent, type CatalogState } from "./extents.ts";
import { RETENTION_DAYS, type SimulatedRequest } from "./requests.ts";
import { decodeRows, keyOf, problemOf, type StoredRow } from "./rows.ts";
import type { Scheduler } from "./scheduler.ts";
import { requestsOf } from "./staged-contents.ts";
import type { StoredObjects } from "./store.ts";

/** How often what happened: a simulation in which little happens shows little. */
export type Tally = Record<
  "acknowledged" | "replayed" | "committed" | "merged" | "expired" | "deleted" | "pendingDeletion" | "damaged" | "read",
  number
>;

type Committed = { snapshot: number; atMs: number };

/** A rule that does not hold. */
export class Broken extends Error {
  constructor(rule: string, detail: string) {
    super(`${rule}: ${detail}`);
    this.name = "Broken";
  }
}

export const PREFIX = "engine";
const STAGED = objectKeys.allStaged(PREFIX);
const DAMAGED = objectKeys.allDamaged(PREFIX);
const DAY_NS = 86_400_000_000_000n;

/** Calls that change only leases and holds; what else they may have done shows with the next call. */
const ELSEWHERE: ReadonlySet<string> = new Set<keyof Catalog>([
  "acquireLease",
  "releaseLease",
  "holdSnapshots",
  "releaseSnapshots",
]);

/**
 * What must be true, by what clients were told and by what really lies in the catalog and the store; looked at whenever
 * one of these changes.
 */
export class Model {
  readonly tally: Tally = {
    acknowledged: 0,
    replayed: 0,
    committed: 0,
    merged: 0,
    expired: 0,
    deleted: 0,
    pendingDeletion: 0,
    damaged: 0,
    read: 0,
  };
  readonly #ports: { scheduler: Scheduler; objects: StoredObjects; connection: Connection; graceMs: number };
  readonly #requests = new Map<string, SimulatedRequest>();
  readonly #acknowledged = new Set<string>();
  #state: CatalogState;
  #changes = -1;
  /** Of every extent that ever was. */
  readonly #rowsOf = new Map<string, readonly StoredRow[]>();
  readonly #history = new Map<string, CatalogExtent>();
  /** Which live extent has a row. */
  readonly #live = new Map<string, string>();
  /** Rows that a commit has brought, also those that retention has taken since. */
  readonly #committed = new Map<string, Committed>();
  /** Requests of intact staged objects, by key; and the keys by request. */
  readonly #staged = new Map<string, readonly string[]>();
  readonly #stagedAt = new Map<string, Set<string>>();

  constructor(ports: { scheduler: Scheduler; objects: StoredObjects; connection: Connection; graceMs: number }) {
    this.#ports = ports;
    this.#state = readCatalog(ports.connection);
    ports.objects.watcher = {
      put: (key, bytes, before) => this.#guard(() => this.#onPut(key, bytes, before)),
      deleted: (key) => this.#guard(() => this.#onDelete(key)),
    };
  }

  /** A client is about to send it. */
  sends(request: SimulatedRequest): void {
    this.#requests.set(request.id, request);
  }

  /** A node has acknowledged it. */
  acknowledges(request: SimulatedRequest, ack: IngestAck): void {
    this.#guard(() => {
      const { id, rows, isPoison } = request;
      this.tally[ack.replayed ? "replayed" : "acknowledged"]++;
      must(!isPoison, "poison is refused", `request ${id}`);
      must(ack.rows === rows.length, "counts are exact", `request ${id}: ${ack.rows} of ${rows.length} rows`);
      this.#acknowledged.add(id);
      this.#mustBeThere(id);
      if (ack.snapshotId === undefined) return;
      const committed = this.#committed.get(keyOf({ request: id, index: 0 }));
      const text = `request ${id}: snapshot ${ack.snapshotId}, committed with ${committed?.snapshot}`;
      must(committed?.snapshot === ack.snapshotId, "acknowledged means visible", text);
    });
  }

  /** Looks at what a call of that name has done to the catalog. */
  look(method: string): void {
    this.#guard(() => {
      // Also what was rolled back counts: where nothing counts, nothing has changed.
      const changes = Number(this.#ports.connection.get("SELECT total_changes() AS n")?.["n"]);
      if (ELSEWHERE.has(method) || changes === this.#changes) return;
      this.#changes = changes;
      const before = this.#state;
      const after = readCatalog(this.#ports.connection);
      this.#state = after;
      const added = [...after.extents.values()].filter(({ id }) => !this.#history.has(id));
      const ended = [...after.extents.values()].filter(
        ({ id, endSnapshot }) => endSnapshot !== undefined && before.extents.get(id)?.endSnapshot !== endSnapshot,
      );
      this.#checkHead(before, after, added.length + ended.length > 0);
      this.#forgotten(before, after);
      for (const extent of added) this.#rowsOf.set(extent.id, this.#read(extent));
      this.#change(method, added, ended);
      for (const extent of [...added, ...ended]) this.#history.set(extent.id, extent);
      for (const extent of after.extents.values()) this.#mustHaveBytes(extent);
      this.#checkFloor(before, after);
      if (method === "markPendingDeletion") this.tally.pendingDeletion++;
    });
  }

  /** Rows of a table that a snapshot shows. */
  rowsAt(tableId: number, snapshot: number): StoredRow[] {
    const extents = [...this.#history.values()].filter(({ tableId: id, beginSnapshot, endSnapshot = Infinity }) => {
      return id === tableId && beginSnapshot <= snapshot && snapshot < endSnapshot;
    });
    return extents.flatMap(({ id }) => this.#rowsOf.get(id) ?? []);
  }

  /** To be called when all has come to rest. */
  concludes(): void {
    this.look("nothing");
    this.#guard(() => {
      for (const id of this.#acknowledged) {
        const missing = this.#rowKeys(id).find((key) => !this.#committed.has(key));
        must(missing === undefined, "what is acknowledged becomes visible", `row ${missing}`);
      }
      const left = this.#ports.objects.infos(STAGED);
      must(left.length === 0, "what is staged is committed", `${left[0]?.key} and ${left.length - 1} more are left`);
    });
  }

  /** Objects of extents, written before that time, that the catalog does not know. */
  orphans(writtenBeforeMs: number): string[] {
    const known = new Set([...this.#state.extents.values()].map(({ key }) => key));
    return this.#ports.objects
      .infos(`${PREFIX}/`)
      .filter(
        ({ key, modifiedAtMs }) =>
          !key.startsWith(STAGED) && !key.startsWith(DAMAGED) && modifiedAtMs < writtenBeforeMs,
      )
      .map(({ key }) => key)
      .filter((key) => !known.has(key));
  }

  get hasStaged(): boolean {
    return this.#ports.objects.infos(STAGED).length > 0;
  }

  #change(method: string, added: readonly CatalogExtent[], ended: readonly CatalogExtent[]): void {
    if (method === "mergeExtents") this.#merged(added, ended);
    else if (method === "endExtents") this.#expired(added, ended);
    else if (method === "commit") this.#commits(added, ended);
    else must(added.length + ended.length === 0, "only commits, merges and retention change extents", method);
  }

  #commits(added: readonly CatalogExtent[], ended: readonly CatalogExtent[]): void {
    must(ended.length === 0, "commits end no extent", `${ended[0]?.id}`);
    this.tally.committed += added.length;
    const { id: snapshot, committedAtMs: atMs } = this.#state.head;
    const counts = new Map<string, number>();
    for (const { id } of added) {
      for (const row of this.#rowsOf.get(id) ?? []) {
        const request = this.#requests.get(row.request);
        if (request === undefined) throw new Broken("rows come from requests", `row ${keyOf(row)}`);
        must(!request.isPoison, "poison is refused", `row ${keyOf(row)}`);
        must(!this.#committed.has(keyOf(row)), "nothing is doubled", `row ${keyOf(row)}`);
        const problem = problemOf(row, request);
        must(problem === undefined, "rows are what was sent", `row ${keyOf(row)}: ${problem}`);
        this.#committed.set(keyOf(row), { snapshot, atMs });
        this.#live.set(keyOf(row), id);
        counts.set(row.request, (counts.get(row.request) ?? 0) + 1);
      }
    }
    for (const [id, count] of counts) {
      const all = this.#requests.get(id)?.rows.length;
      must(count === all, "requests are committed whole", `request ${id}: ${count} of ${all} rows`);
    }
  }

  #merged(added: readonly CatalogExtent[], ended: readonly CatalogExtent[]): void {
    if (ended.length > 0) this.tally.merged++;
    const textsOf = (extents: readonly CatalogExtent[]) =>
      extents.flatMap(({ id }) => (this.#rowsOf.get(id) ?? []).map(({ text }) => text)).sort();
    const [before, after] = [textsOf(ended), textsOf(added)];
    const lost = before.find((text, i) => text !== after[i]) ?? after[before.length];
    must(lost === undefined, "merges keep every row", `${before.length} became ${after.length}, first at ${lost}`);
    for (const { id } of ended) for (const row of this.#rowsOf.get(id) ?? []) this.#live.delete(keyOf(row));
    for (const { id } of added) for (const row of this.#rowsOf.get(id) ?? []) this.#live.set(keyOf(row), id);
  }

  #expired(added: readonly CatalogExtent[], ended: readonly CatalogExtent[]): void {
    must(added.length === 0, "retention adds nothing", `${added[0]?.id}`);
    this.tally.expired += ended.length;
    const beforeNs = BigInt(this.#ports.scheduler.nowMs) * 1_000_000n - BigInt(RETENTION_DAYS) * DAY_NS;
    for (const { id, tableId } of ended) {
      const isKept = this.#state.tables.get(tableId)?.retentionDays !== undefined;
      must(isKept, "what has no retention stays", `extent ${id}`);
      for (const row of this.#rowsOf.get(id) ?? []) {
        const arrivedNs = BigInt(this.#committed.get(keyOf(row))?.atMs ?? 0) * 1_000_000n;
        const newestNs = row.atNs < arrivedNs ? row.atNs : arrivedNs;
        must(newestNs < beforeNs, "retention takes no row that is young", `row ${keyOf(row)}`);
        this.#live.delete(keyOf(row));
      }
    }
  }

  #read(extent: CatalogExtent): StoredRow[] {
    const { id, key, checksum, rows } = extent;
    const bytes = this.#ports.objects.get(key);
    if (bytes === undefined) throw new Broken("no extent without bytes", `extent ${id}`);
    must(checksumOf(bytes) === checksum, "no extent with other bytes", `extent ${id}`);
    const decoded = decodeRows(bytes);
    must(decoded.length === rows, "counts are exact", `extent ${id} has ${decoded.length} rows, not ${rows}`);
    return decoded;
  }

  #checkHead(before: CatalogState, after: CatalogState, hasChanged: boolean): void {
    const [from, to] = [before.head, after.head];
    const grows = hasChanged ? to.id > from.id : to.id >= from.id;
    must(grows && to.committedAtMs >= from.committedAtMs, "the head increases", `${from.id} to ${to.id}`);
  }

  #forgotten(before: CatalogState, after: CatalogState): void {
    for (const extent of before.extents.values()) {
      if (after.extents.has(extent.id)) continue;
      must(!isNeeded(extent, after), "only what nobody can read is forgotten", `extent ${extent.id}`);
      this.tally.deleted++;
    }
  }

  /** A snapshot stays readable for the grace after the next one came. */
  #checkFloor(before: CatalogState, after: CatalogState): void {
    must(after.oldest >= before.oldest, "the oldest snapshot only advances", `${before.oldest} to ${after.oldest}`);
    if (after.oldest === before.oldest) return;
    const { connection, graceMs, scheduler } = this.#ports;
    const row = connection.get("SELECT committed_at_ms FROM snapshots WHERE id = ?", after.oldest);
    const ageMs = scheduler.nowMs - Number(row?.["committed_at_ms"]);
    must(
      ageMs >= graceMs,
      "snapshots stay readable for the grace",
      `the one before ${after.oldest}, after ${ageMs} ms`,
    );
  }

  #mustHaveBytes(extent: CatalogExtent): void {
    if (this.#ports.objects.get(extent.key) !== undefined) return;
    must(!isNeeded(extent, this.#state), "no needed object is deleted", `extent ${extent.id}`);
  }

  #onPut(key: string, bytes: Uint8Array<ArrayBuffer>, before: Uint8Array<ArrayBuffer> | undefined): void {
    if (key.startsWith(DAMAGED)) {
      this.tally.damaged++;
      return;
    }
    const length = Math.min(bytes.length, before?.length ?? 0);
    const isSame = before === undefined || Buffer.compare(bytes.subarray(0, length), before.subarray(0, length)) === 0;
    must(isSame, "no key is written with other bytes", key);
    if (!key.startsWith(STAGED)) return;
    const requests = requestsOf(key.slice(STAGED.length), bytes);
    this.#staged.set(key, requests);
    for (const id of requests) {
      const keys = this.#stagedAt.get(id) ?? new Set();
      this.#stagedAt.set(id, keys.add(key));
    }
  }

  #onDelete(key: string): void {
    const requests = this.#staged.get(key) ?? [];
    this.#staged.delete(key);
    for (const id of requests) {
      this.#stagedAt.get(id)?.delete(key);
      if (this.#acknowledged.has(id)) this.#mustBeThere(id);
    }
    for (const extent of this.#state.extents.values()) if (extent.key === key) this.#mustHaveBytes(extent);
  }

  /** Committed (and, if it is gone, by retention), or in an intact staged object. */
  #mustBeThere(id: string): void {
    if ((this.#stagedAt.get(id)?.size ?? 0) > 0) return;
    const missing = this.#rowKeys(id).find((key) => !this.#committed.has(key));
    must(missing === undefined, "nothing acknowledged is lost", `row ${missing}`);
  }

  #rowKeys(request: string): string[] {
    return (this.#requests.get(request)?.rows ?? []).map((_, index) => keyOf({ request, index }));
  }

  #guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#ports.scheduler.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }
}

function must(holds: boolean, rule: string, detail: string): void {
  if (!holds) throw new Broken(rule, detail);
}

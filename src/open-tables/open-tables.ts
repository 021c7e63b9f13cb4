import { createHash } from "node:crypto";
import type { FileChange, TableRecord } from "../catalog/catalog.ts";
import { columnsInQuestion, wideningSnapshots } from "../catalog/publishable.ts";
import { EngineError } from "../core/errors.ts";
import { valuesOf } from "../config/option.ts";
import type { StorageDeps } from "../feature/feature.ts";
import { AnnouncedSnapshots, type Announced, type AnnouncedTip } from "./announced.ts";
import { tableMetadata, type MetadataOf, type TableMetadata } from "./format/metadata.ts";
import { manifestListBytes, type LocationOf } from "./format/manifest.ts";
import { ReaderHolds } from "./holds.ts";
import { OPEN_TABLES_METRICS } from "./metrics.ts";
import { OPEN_TABLE_OPTIONS } from "./options.ts";
import { locationsIn, metadataFolder } from "./place.ts";
import { dividePublished } from "./published.ts";
import { writeSnapshot } from "./writer.ts";

/** A table as a client loads it. */
export type LoadedTable = {
  /** Where the same metadata is in the store, with its current snapshot alone or with all of them. */
  location: string;
  metadata: TableMetadata;
};

export type LoadOptions = {
  /** All snapshots that can be read, or the current one alone. */
  all: boolean;
  /** They go into the metadata. */
  properties: Readonly<Record<string, string>>;
  /** The metadata in the store has all snapshots too: for a client that reads it there. */
  areAllStored?: boolean;
};

/** How often it is said that a table is loaded. */
const TOUCH_MS = 3_600_000;

/** Times that a state which is written is another one before it is announced. */
const MOST_ATTEMPTS = 10;

/** Snapshots from before a table was loaded for the first time, and those that nobody waited for, in one run. */
const HISTORY_PER_RUN = 100;

export type OpenTablesPorts = Pick<StorageDeps, "catalog" | "records" | "store" | "clock" | "newId" | "metrics">;

export type OpenTablesSettings = {
  /** What the keys of all objects start with. */
  pathPrefix: string;
  locationOf: LocationOf;
  /** For how long the files of a table stay that was loaded. */
  holdMs: number;
};

const known = new WeakMap<StorageDeps["catalog"], OpenTables>();

/** One for all that this process does with a catalog. */
export function openTablesOf(deps: StorageDeps): OpenTables {
  const there = known.get(deps.catalog);
  if (there !== undefined) return there;
  const { icebergHoldSecs, pathPrefix } = valuesOf(OPEN_TABLE_OPTIONS, deps.config);
  const made = new OpenTables(deps, { pathPrefix, locationOf: locationsIn(deps), holdMs: icebergHoldSecs * 1_000 });
  known.set(deps.catalog, made);
  return made;
}

/**
 * Tables as other programs read them. What a client needs is written before it is told of it, and a table that nobody
 * loads costs nothing.
 */
export class OpenTables {
  readonly #ports: OpenTablesPorts;
  readonly #settings: OpenTablesSettings;
  readonly #announced: AnnouncedSnapshots;
  readonly #holds: ReaderHolds;
  /** When this process last said that somebody loads a table, by its id. */
  readonly #touched = new Map<number, number>();
  /** The newest snapshots that this process knows all before to be announced of, by table. */
  readonly #complete = new Map<number, number>();
  /** What this process last stored with all snapshots, and when, by the table's id. */
  readonly #storedWhole = new Map<number, { key: string; ms: number }>();
  /** As of when nothing had changed since the tip, by table: most loads come while nothing does. */
  readonly #unchanged = new Map<number, string>();
  /** Tables that this process writes a snapshot of. */
  readonly #writing = new Map<number, Promise<unknown>>();

  constructor(ports: OpenTablesPorts, settings: OpenTablesSettings) {
    this.#ports = ports;
    this.#settings = settings;
    this.#announced = new AnnouncedSnapshots(ports.records, settings.locationOf(""));
    this.#holds = new ReaderHolds(ports, settings.holdMs);
  }

  get announced(): AnnouncedSnapshots {
    return this.#announced;
  }

  /** The place of the whole store, as other programs see it. */
  get root(): string {
    return this.#settings.locationOf("");
  }

  /** The places of a table's files and of its metadata: what a reader of it has to get at. */
  placesOf({ id, database, name }: Pick<TableRecord, "id" | "database" | "name">): string[] {
    const { pathPrefix, locationOf } = this.#settings;
    return [`${pathPrefix}/${database}/${name}/`, metadataFolder(pathPrefix, id)].map(locationOf);
  }

  /**
   * The table as of now. Rejects with `table_not_found`, and with what the store answers when it cannot be written.
   */
  async load(
    { database, name }: Pick<TableRecord, "database" | "name">,
    { all, properties, areAllStored = false }: LoadOptions,
  ): Promise<LoadedTable> {
    const { catalog } = this.#ports;
    const { table, head, tip } = await this.#current(database, name);
    await this.#holds.hold(head);
    const uuid = await this.#uuidOf(table.id);
    const folder = metadataFolder(this.#settings.pathPrefix, table.id);
    const of = { table, uuid, locationOf: this.#settings.locationOf, folder, schemaOf: head };
    const before = (all || areAllStored) && tip !== undefined ? await this.#before(table.id, tip) : [];
    const location = areAllStored
      ? await this.#storeWhole(table.id, of, [...before, ...(tip === undefined ? [] : [tip])])
      : await this.#writeMetadata(table.id, of, tip);
    const current = tip === undefined ? await this.#placeholder(table, head, folder) : tip;
    if (current === undefined) return { location, metadata: tableMetadata({ ...of, snapshots: [], properties }) };
    const { rows } = await catalog.tableStats(table.id);
    const pending = { rows: Math.max(0, rows - current.rows), sinceMs: current.pending.sinceMs };
    // Nothing was waiting then, so what does came later.
    pending.sinceMs ??= current.committedAtMs;
    return {
      location,
      metadata: tableMetadata({ ...of, snapshots: [...(all ? before : []), { ...current, pending }], properties }),
    };
  }

  /**
   * Announces the current snapshot of a table, and those before it that can be read and are not announced yet. False when
   * there was nothing to do.
   */
  async follow({ id, database, name }: TableRecord, signal: AbortSignal): Promise<boolean> {
    const { table, tip } = await this.#current(database, name);
    if (tip === undefined || this.#complete.get(id) === tip.snapshot) return false;
    const left = await this.#writeHistory(table, tip, signal);
    if (left === 0) this.#complete.set(id, tip.snapshot);
    return true;
  }

  /** The id by which clients know a table, which somebody loads now. */
  async #uuidOf(tableId: number): Promise<string> {
    const nowMs = this.#ports.clock.monotonicMs();
    const touchedMs = this.#touched.get(tableId) ?? -Infinity;
    const uuid = await this.#announced.uuidOf(tableId, this.#ports.newId);
    if (nowMs - touchedMs < TOUCH_MS) return uuid;
    await this.#announced.touch(tableId);
    this.#touched.set(tableId, nowMs);
    return uuid;
  }

  /** Announced snapshots before the tip that can be read. */
  async #before(tableId: number, tip: Announced): Promise<Announced[]> {
    const oldest = await this.#ports.catalog.oldestSnapshot(tableId);
    return (await this.#announced.since(tableId, oldest.id)).filter(({ snapshot }) => snapshot < tip.snapshot);
  }

  /** The head, the table as of then, and its newest snapshot, which is announced. */
  async #current(database: string, name: string): Promise<CurrentTable> {
    const { catalog } = this.#ports;
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
      const found = await catalog.resolve(database, [name]);
      const table = found?.tables[0];
      if (found === undefined || table === undefined) {
        throw new EngineError("table_not_found", `there is no table ${database}.${name}`);
      }
      const head = found.head.id;
      const tip = await this.#announced.tip(table.id);
      const widenings = wideningSnapshots(table);
      // All that the answer depends on: snapshots up to a head stay as they are.
      const asked = [head, tip?.snapshot, ...widenings].join();
      if (this.#unchanged.get(table.id) === asked) return { table, head, tip };
      const changes = await catalog.fileChanges(table.id, tip?.snapshot ?? -1, widenings);
      const change = changes.findLast(({ id }) => id <= head);
      if (change === undefined) {
        this.#unchanged.set(table.id, asked);
        return { table, head, tip };
      }
      // What somebody else writes may be older than what this caller has to see, so it is looked at once it is there.
      const writing = this.#writing.get(table.id);
      if (writing !== undefined) {
        await writing;
        continue;
      }
      const work = this.#write(table, change, { readAt: head, tip });
      const done = work.then(
        () => {},
        () => {},
      );
      this.#writing.set(table.id, done);
      try {
        await work;
      } finally {
        this.#writing.delete(table.id);
      }
    }
    throw new EngineError("unavailable", `table ${database}.${name} changes faster than its files can be listed`);
  }

  /** Writes a snapshot and announces it; leaves it when the table has changed so much meanwhile that it cannot. */
  async #write(
    table: TableRecord,
    change: FileChange,
    { readAt, tip }: { readAt: number; tip: AnnouncedTip | undefined },
  ): Promise<void> {
    const { catalog, store, metrics } = this.#ports;
    const { locationOf, pathPrefix } = this.#settings;
    const ports = { catalog, store, locationOf, folder: metadataFolder(pathPrefix, table.id) };
    const known = tip?.manifests ?? [];
    try {
      const written = await writeSnapshot(ports, table, change, { readAt, known });
      await this.#announced.announce(table.id, tip?.snapshot, written);
      OPEN_TABLES_METRICS.of(metrics).snapshotsWritten.inc();
    } catch (error) {
      if (!isExpired(error)) throw error;
    }
  }

  /** Announces snapshots before the tip; resolves to how many are left for another run. */
  async #writeHistory(table: TableRecord, tip: AnnouncedTip, signal: AbortSignal): Promise<number> {
    const { catalog } = this.#ports;
    const { id: oldest } = await catalog.oldestSnapshot(table.id);
    const changes = await catalog.fileChanges(table.id, oldest - 1, wideningSnapshots(table));
    const there = new Set((await this.#announced.since(table.id, oldest)).map(({ snapshot }) => snapshot));
    const missing = changes.filter(({ id }) => id < tip.snapshot && !there.has(id));
    // The newest first: they are the ones that can be read for the longest.
    const now = missing.slice(-HISTORY_PER_RUN).toReversed();
    for (const change of now) {
      signal.throwIfAborted();
      await this.#write(table, change, { readAt: change.id, tip });
    }
    return missing.length - now.length;
  }

  /** Of a table without any published file: a snapshot without files, which says how many rows wait. */
  async #placeholder(table: TableRecord, head: number, folder: string): Promise<Announced | undefined> {
    const { catalog, store } = this.#ports;
    const extents = await catalog
      .extents(table.id, head, undefined, columnsInQuestion(table))
      .catch((error: unknown) => {
        if (isExpired(error)) return [];
        throw error;
      });
    const first = extents[0];
    if (first === undefined) return undefined;
    const { pending } = dividePublished(table, head, extents);
    const snapshot = extents.reduce((least, { beginSnapshot }) => Math.min(least, beginSnapshot), first.beginSnapshot);
    const listKey = `${folder}empty-${snapshot}.avro`;
    await store.put(listKey, await manifestListBytes(snapshot, [], this.#settings.locationOf));
    const sums = { added: 0, removed: 0, files: 0, rows: 0, sizeBytes: 0 };
    return { snapshot, committedAtMs: pending.sinceMs ?? 0, listKey, ...sums, pending };
  }

  /** Writes the metadata of the newest snapshot unless it is there; resolves to where it is. */
  async #writeMetadata(
    tableId: number,
    of: Omit<MetadataOf, "snapshots" | "properties">,
    tip: AnnouncedTip | undefined,
  ): Promise<string> {
    const { key, bytes } = metadataFile(of, tip === undefined ? [] : [tip]);
    if (tip?.metadataKey !== key) {
      await this.#ports.store.put(key, bytes);
      if (tip !== undefined) await this.#announced.setMetadata(tableId, tip.snapshot, key);
    }
    return this.#settings.locationOf(key);
  }

  /** Writes the metadata with all snapshots, once in an hour: the sweep knows nothing of it. Resolves to where it is. */
  async #storeWhole(
    tableId: number,
    of: Omit<MetadataOf, "snapshots" | "properties">,
    snapshots: readonly Announced[],
  ): Promise<string> {
    const { key, bytes } = metadataFile(of, snapshots);
    const known = this.#storedWhole.get(tableId);
    const ms = this.#ports.clock.monotonicMs();
    if (known?.key !== key || ms - known.ms >= TOUCH_MS) {
      await this.#ports.store.put(key, bytes);
      this.#storedWhole.set(tableId, { key, ms });
    }
    return this.#settings.locationOf(key);
  }
}

/** What is in the store of a table's metadata; the key tells the bytes. */
function metadataFile(
  of: Omit<MetadataOf, "snapshots" | "properties">,
  snapshots: readonly Announced[],
): { key: string; bytes: Buffer } {
  const bytes = Buffer.from(JSON.stringify(tableMetadata({ ...of, snapshots, properties: {} })));
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 32);
  return { key: `${of.folder}${snapshots.at(-1)?.snapshot ?? 0}-${hash}.metadata.json`, bytes };
}

type CurrentTable = { table: TableRecord; head: number; tip: AnnouncedTip | undefined };

function isExpired(error: unknown): boolean {
  return error instanceof EngineError && error.code === "snapshot_expired";
}

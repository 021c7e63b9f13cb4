import type { FlushCommit, FlushOutcome, NewExtent, Snapshot, TableRecord } from "../catalog/catalog.ts";
import type { SourceStep } from "../catalog/input-positions.ts";
import { ExtentPendingDeletion, LeaseLost } from "../catalog/refusals.ts";
import { isBeyondReal } from "../catalog/widening.ts";
import { releaseShared } from "../core/buffer-pool.ts";
import { Semaphore } from "../core/concurrency.ts";
import { EngineError, fromErrorRecord } from "../core/errors.ts";
import { LIMITS } from "../core/limits.ts";
import { foldName, isColumnName } from "../core/names.ts";
import { DEFAULT_SHAPE, specOf, TIME_COLUMN, TIME_STAND_INS, type ColumnSpec } from "../format/types.ts";
import type { FlushPorts, Target } from "./flush.ts";
import { columnToSeal, type SealBody, type SealColumn, type SealedExtent } from "./seal.ts";
import type { SealedFlush } from "./seal-cuts.ts";
import { sealAgreed, widenableBy } from "./seal-widening.ts";
import { createTable, findTable, infersTypes, shapeFor } from "./tables.ts";
import { discardExtents, uploadExtent } from "./upload.ts";

/**
 * A load of any size as one commit, in bounded memory: pieces are sealed and their extents uploaded as they come; all
 * become visible together, or none does and what was uploaded is deleted. What a crash leaves behind the orphan sweep
 * finds.
 *
 * Every piece is sealed under the columns of the table and those that the pieces before it brought, so the first value
 * of a new column decides its type, as with requests that follow each other. A piece that is added while those before
 * it are sealed begins under the columns that are known by then, and is sealed once more when they bring others. A table
 * that does not exist is created when all rows were read.
 */
export type LargeLoadPorts = Pick<
  FlushPorts,
  "catalog" | "store" | "seal" | "sealThreads" | "newId" | "log" | "format" | "keyPrefix" | "inferTypes"
> & {
  /** Commits one flush, with the fence of whoever loads. */
  commit(flush: FlushCommit): Promise<FlushOutcome>;
};

export type LargeLoadOptions = {
  target: Target;
  autoCreate: boolean;
  /** Whether unknown fields become columns; else they are dropped. */
  evolve: boolean;
  /** Time of arrival: `at` of rows that have none. */
  arrivedAtNs: bigint;
};

/** The load must begin anew, with these columns declared: some have other types than its pieces were sealed under. */
export class TypesChanged extends Error {
  readonly columns: readonly ColumnSpec[];

  constructor(columns: readonly ColumnSpec[]) {
    super("a column became wider than the load's first pieces have it");
    this.name = "TypesChanged";
    this.columns = columns;
  }
}

export type LoadOutcome =
  | { kind: "committed"; snapshot: Snapshot; rows: number; sizeBytes: number; misfits: number }
  /** The table has changed under the load: it must be read again. Nothing is stored. */
  | { kind: "again" }
  /** The input is elsewhere: somebody else has committed it, or its position was reset. Nothing is stored. */
  | { kind: "moved" };

/** A piece, and how many columns the load had added when it was sealed. */
type SealedPiece = { sealed: SealedFlush; newColumns: number };

const CONCURRENT_UPLOADS = 2;
/** Their descriptions are held until the commit, which takes them all in one transaction. */
const MAX_EXTENTS = 10_000;

export class LargeLoad {
  readonly #ports: LargeLoadPorts;
  readonly #options: LargeLoadOptions;
  readonly #table: TableRecord | undefined;
  readonly #newColumns: ColumnSpec[] = [];
  readonly #uploads: Promise<NewExtent>[] = [];
  readonly #uploading = new Semaphore(CONCURRENT_UPLOADS);
  /** All pieces so far are counted, or one of them has failed. */
  #counted: Promise<unknown> = Promise.resolve();
  #rows = 0;
  #misfits = 0;

  /** Throws `table_not_found` where there is no table and none may be made, `invalid_name` where none can be. */
  static async begin(ports: LargeLoadPorts, options: LargeLoadOptions): Promise<LargeLoad> {
    const { target, autoCreate } = options;
    return new LargeLoad(ports, options, await findTable(ports.catalog, { ...target, autoCreate }));
  }

  private constructor(ports: LargeLoadPorts, options: LargeLoadOptions, table: TableRecord | undefined) {
    this.#ports = ports;
    this.#options = options;
    this.#table = table;
  }

  /** Rows so far. */
  get rows(): number {
    return this.#rows;
  }

  /** Columns of the table, and those that the load adds. */
  get columns(): readonly SealColumn[] {
    return [...(this.#table?.columns.map(columnToSeal) ?? DEFAULT_SHAPE.map(specOf)), ...this.#newColumns];
  }

  /**
   * Says which types the input itself gives its fields: fields without a column get one of their type. What is more than
   * a load may add goes to `props`.
   */
  declare(columns: readonly ColumnSpec[]): void {
    if (!this.#options.evolve) return;
    const names = new Set(columns.map(({ name }) => foldName(name)));
    // The field that stands in for a missing `at` is consumed by it.
    const standIn = names.has(TIME_COLUMN) ? undefined : TIME_STAND_INS.find((name) => names.has(name));
    const taken = new Set(this.columns.map(({ name }) => foldName(name)));
    for (const column of columns) {
      const folded = foldName(column.name);
      if (this.#columnsLeft() === 0) return;
      if (taken.has(folded) || folded === standIn || !isColumnName(column.name)) continue;
      taken.add(folded);
      this.#newColumns.push(column);
    }
  }

  /**
   * Seals a piece of NDJSON, of whole lines and at least one row, and uploads it; its buffer is given back. Pieces may be
   * added while others are under way, and count in the order in which they were added: the first that fails fails those
   * behind it. Rejects with `bad_request_body` with the line in it, and `TypesChanged` when the pieces before it were
   * sealed under types that do not hold any more.
   */
  async add(bytes: Uint8Array): Promise<void> {
    const before = this.#counted;
    const sealing = this.#seal(bytes);
    const uploads = this.#countAfter(before, bytes, sealing);
    this.#counted = uploads;
    await Promise.all(await uploads);
  }

  async #seal(bytes: Uint8Array): Promise<SealedPiece> {
    const { seal, sealThreads, format } = this.#ports;
    const newColumns = this.#newColumns.length;
    const task = { columns: this.columns, bodies: [this.#bodyOf(bytes)], format };
    return { sealed: await sealAgreed(seal, sealThreads, task), newColumns };
  }

  /** Counts a piece when those before it are. Settles when no thread reads it any more. */
  async #countAfter(
    before: Promise<unknown>,
    bytes: Uint8Array,
    sealing: Promise<SealedPiece>,
  ): Promise<readonly Promise<NewExtent>[]> {
    const [earlier, own] = await Promise.allSettled([before, sealing]);
    if (own.status === "rejected") throw earlier.status === "rejected" ? earlier.reason : own.reason;
    const { sealed, newColumns } = own.value;
    if (earlier.status === "fulfilled" && newColumns === this.#newColumns.length) return this.#count(bytes, sealed);
    releaseExtents(sealed);
    if (earlier.status === "rejected") throw earlier.reason;
    return this.#count(bytes, (await this.#seal(bytes)).sealed);
  }

  async #count(bytes: Uint8Array, sealed: SealedFlush): Promise<readonly Promise<NewExtent>[]> {
    await this.#widen(sealed);
    const { extents, newColumns, outcomes } = sealed;
    const [outcome] = outcomes;
    if (outcome?.ok !== true) {
      throw outcome === undefined
        ? new EngineError("internal", "the sealer gave no outcome")
        : fromErrorRecord(outcome.error);
    }
    releaseShared(bytes);
    const { rows, misfits = [] } = outcome;
    this.#rows += rows;
    for (const { count } of misfits) this.#misfits += count;
    this.#newColumns.push(...newColumns);
    const uploads = extents.map((extent) => this.#upload(extent));
    if (this.#uploads.length > MAX_EXTENTS) throw tooLarge();
    return uploads;
  }

  /** Fractions for columns that are `long` so far: see `seal-widening.ts`, which does it within one piece. */
  async #widen(sealed: SealedFlush): Promise<void> {
    const own = new Set(widenableBy(sealed, this.#newColumns).map(foldName));
    for (const { stats } of own.size === 0 ? [] : await Promise.all(this.#uploads)) {
      for (const column of stats) if (isBeyondReal(column)) own.delete(foldName(column.name));
    }
    const wanted = this.#table === undefined ? [] : widenableBy(sealed, this.#table.columns);
    const isWidened = wanted.length > 0 && (await this.#widenTable(wanted));
    if (own.size === 0 && !isWidened) return;
    releaseExtents(sealed);
    throw new TypesChanged(
      this.#newColumns.map((column) =>
        own.has(foldName(column.name)) ? { ...column, type: { kind: "real" } } : column,
      ),
    );
  }

  /** Whether the catalog has widened any. Otherwise the fractions are in `props`. */
  async #widenTable(names: readonly string[]): Promise<boolean> {
    const table = this.#table;
    if (table === undefined) return false;
    const after = await this.#ports.catalog.widenColumns(table.id, names);
    return after.schemaVersion !== table.schemaVersion;
  }

  #bodyOf(bytes: Uint8Array): SealBody {
    const { evolve, arrivedAtNs } = this.#options;
    const inferTypes = infersTypes({}, this.#table, this.#ports.inferTypes);
    return { bytes, evolve, inferTypes, arrivedAtNs, maxNewColumns: this.#columnsLeft(), mayBeEmpty: true };
  }

  #columnsLeft(): number {
    return Math.max(0, LIMITS.newColumnsPerRequest - this.#newColumns.length);
  }

  #upload(extent: SealedExtent): Promise<NewExtent> {
    const { database, table: name } = this.#options.target;
    const table = this.#table ?? { database, name };
    const upload = this.#uploading.run(() => uploadExtent(this.#ports, table, extent));
    upload.catch(() => undefined);
    this.#uploads.push(upload);
    return upload;
  }

  /**
   * Commits all pieces, which are that step of their input (`FlushCommit.sources`). Where nothing is stored, what was
   * uploaded is deleted, but for an error that leaves open whether it is.
   */
  async commit(step: SourceStep): Promise<LoadOutcome> {
    const { extents, table } = await this.#prepare();
    if (table === undefined) return this.#discarded({ kind: "again" });
    const outcome = await this.#send({
      tableId: table.id,
      schemaVersion: table.schemaVersion,
      newColumns: this.#newColumns,
      extents,
      ledger: [],
      sources: [step],
    });
    if (outcome.kind === "committed") {
      const sizeBytes = extents.reduce((sum, extent) => sum + extent.sizeBytes, 0);
      return { ...outcome, rows: this.#rows, sizeBytes, misfits: this.#misfits };
    }
    return this.#discarded({ kind: outcome.kind === "position_conflict" ? "moved" : "again" });
  }

  /** Everything is uploaded, and the table there. */
  async #prepare(): Promise<{ extents: readonly NewExtent[]; table: TableRecord | undefined }> {
    try {
      if (this.#rows === 0) throw new EngineError("bad_request_body", "the file has no rows");
      return { extents: await Promise.all(this.#uploads), table: this.#table ?? (await this.#createTable()) };
    } catch (error) {
      await this.discard();
      throw error;
    }
  }

  /** Undefined when somebody else was faster: the table may have other columns than these rows were read under. */
  async #createTable(): Promise<TableRecord | undefined> {
    const { catalog, inferTypes } = this.#ports;
    return createTable(catalog, { ...this.#options.target, ...shapeFor([]) }, infersTypes({}, undefined, inferTypes));
  }

  async #send(flush: FlushCommit): Promise<FlushOutcome> {
    try {
      return await this.#ports.commit(flush);
    } catch (error) {
      // Anything else may have struck after the commit took effect.
      if (storedNothing(error)) await this.discard();
      throw error;
    }
  }

  async #discarded(outcome: LoadOutcome): Promise<LoadOutcome> {
    await this.discard();
    return outcome;
  }

  /** Deletes what was uploaded. Not after a commit that failed: `commit` does so itself where that is safe. */
  async discard(): Promise<void> {
    const settled = await Promise.allSettled(this.#uploads.splice(0));
    const extents = settled.flatMap((upload) => (upload.status === "fulfilled" ? [upload.value] : []));
    if (extents.length > 0) await discardExtents(this.#ports, extents);
  }
}

/** Nobody takes what was sealed. */
function releaseExtents({ extents }: SealedFlush): void {
  for (const { bytes } of extents) releaseShared(bytes);
}

/** See `Catalog`. */
function storedNothing(error: unknown): boolean {
  return error instanceof EngineError || error instanceof LeaseLost || error instanceof ExtentPendingDeletion;
}

function tooLarge(): EngineError {
  const message = `the file makes more than ${MAX_EXTENTS} extents, the most that one commit takes; split it`;
  return new EngineError("bad_request_body", message);
}

import type { Catalog, FlushCommit, FlushOutcome, Lease } from "../../../catalog/catalog.ts";
import { nowNs, sleep, type Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import { LIMITS } from "../../../core/limits.ts";
import { foldName } from "../../../core/names.ts";
import type { Random } from "../../../core/random.ts";
import type { ColumnSpec } from "../../../format/types.ts";
import type { Confinement } from "../../../io/confinement/confinement.ts";
import { ObjectChanged, type ObjectInfo } from "../../../io/objectstore/objectstore.ts";
import { lineIn, type Batch, type Origin } from "../../../io/rows/batcher.ts";
import { Committer, type CommitterPorts } from "../../committer.ts";
import { conflictPauseMs } from "../../flush.ts";
import { LargeLoad, TypesChanged, type LargeLoadPorts, type LoadOutcome } from "../../large-load.ts";
import type { PieceRoom } from "../../piece-room.ts";
import type { DropFile } from "./drop-file.ts";
import { encodePosition, sourceOf } from "./position.ts";
import { originOf, PIECE_BYTES, readFile } from "./read-file.ts";

export type FileLoadPorts = Omit<LargeLoadPorts, "commit"> &
  Omit<CommitterPorts, "catalog"> & {
    catalog: Catalog;
    clock: Clock;
    random: Random;
    room: PieceRoom;
    tempFolder: string;
    confinement: Confinement;
  };

export type FileLoadOptions = { autoCreate: boolean; evolve: boolean };

/** A file to load, and the position from which it may be. */
export type FileToLoad = {
  info: ObjectInfo;
  file: Extract<DropFile, { kind: "file" }>;
  /** Of an earlier file of that name; undefined where there was none. */
  from: string | undefined;
};

export type LoadedFile =
  | (Extract<LoadOutcome, { kind: "committed" }> & { position: string })
  | Extract<LoadOutcome, { kind: "moved" }>;

/** Of one file: so the threads have work while the extents of the piece before are written. */
const PIECES_UNDER_WAY = 2;

/** Of a flush; and each column that an attempt brings may have to be widened once. */
const MOST_ATTEMPTS = LIMITS.commitAttempts + LIMITS.newColumnsPerRequest;

/** Loads files under one lease: files that end together share a snapshot, as flushes do. */
export class FileLoader {
  readonly #ports: FileLoadPorts;
  readonly #options: FileLoadOptions;
  readonly #committer: Committer;
  readonly #signal: AbortSignal;

  constructor(
    ports: FileLoadPorts,
    options: FileLoadOptions,
    { lease, signal }: { lease: Lease; signal: AbortSignal },
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#signal = signal;
    const { catalog } = ports;
    this.#committer = new Committer({ ...ports, catalog: { commit: (flushes) => catalog.commit(flushes, lease) } });
  }

  /**
   * Loads the file whole or not at all. Throws `UnreadableRows` or `bad_request_body` for what is wrong with it,
   * `table_not_found`, `ObjectChanged` and `ObjectNotFound` when it is another one by now, `LeaseLost`, and what the
   * store and the catalog throw.
   */
  async load(toLoad: FileToLoad): Promise<LoadedFile> {
    let declared: readonly ColumnSpec[] = [];
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const { clock, random } = this.#ports;
      if (attempt > 0) await sleep(clock, conflictPauseMs(attempt, random), this.#signal);
      try {
        const outcome = await this.#attempt(toLoad, declared);
        if (outcome.kind !== "again") return outcome;
      } catch (error) {
        if (!(error instanceof TypesChanged)) throw error;
        declared = error.columns;
      }
    }
    throw new EngineError("ingest_failed", `the table changed under the file ${MOST_ATTEMPTS} times`);
  }

  async #attempt(
    { info, file, from }: FileToLoad,
    declared: readonly ColumnSpec[],
  ): Promise<LoadedFile | Extract<LoadOutcome, { kind: "again" }>> {
    const { clock, catalog } = this.#ports;
    const { database, table } = file;
    const load = await LargeLoad.begin(
      { ...this.#ports, catalog, commit: (flush) => this.#commit(flush) },
      { target: { database, table }, ...this.#options, arrivedAtNs: nowNs(clock) },
    );
    load.declare(declared);
    try {
      await this.#read(load, { info, file });
      // What was read may be of no one state of a file that was written meanwhile.
      if ((await this.#ports.store.head(info.key))?.identity !== info.identity) throw new ObjectChanged(info.key);
      this.#signal.throwIfAborted();
    } catch (error) {
      await load.discard();
      throw error;
    }
    const to = encodePosition({ identity: info.identity, rows: load.rows });
    const outcome = await load.commit({ name: sourceOf(info.key), ...(from === undefined ? {} : { from }), to });
    return outcome.kind === "committed" ? { ...outcome, position: to } : outcome;
  }

  async #commit(flush: FlushCommit): Promise<FlushOutcome> {
    this.#committer.approach();
    const outcome = this.#committer.commit(flush);
    this.#committer.leave();
    return outcome;
  }

  /** Seals and uploads some pieces while the next one is read. */
  async #read(load: LargeLoad, { info, file }: Pick<FileToLoad, "info" | "file">): Promise<void> {
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#signal, stop.signal]);
    const { format } = file;
    const onColumns = (columns: readonly ColumnSpec[]): void => load.declare(columns);
    const batches = readFile({ ...this.#ports, info, format, columns: load.columns, onColumns, signal });
    const sizeBytes = Math.min(Math.max(info.sizeBytes, 1), PIECE_BYTES);
    const pieces = new RoomyPieces(batches, () => this.#ports.room.take(foldName(file.database), sizeBytes, signal));
    const adding: Promise<void>[] = [];
    const add = async ({ batch, room }: Piece): Promise<void> => {
      await addTo(load, batch, originOf({ info, format }));
      room.release();
    };
    try {
      for (let reading = pieces.next(); ;) {
        const piece = await reading;
        if (piece === undefined) break;
        reading = pieces.next();
        if (adding.length === PIECES_UNDER_WAY) await adding.shift();
        const added = add(piece);
        added.catch(() => undefined);
        adding.push(added);
      }
      await Promise.all(adding);
    } catch (error) {
      const added = await Promise.allSettled(adding);
      // What is wrong earlier in the file is told first.
      throw added.find((outcome) => outcome.status === "rejected")?.reason ?? error;
    } finally {
      stop.abort();
      await Promise.allSettled(adding);
      await pieces.end();
    }
  }
}

type Room = Awaited<ReturnType<PieceRoom["take"]>>;
type Piece = { batch: Batch; room: Pick<Room, "release"> };

/** Batches, each read once there is room for it. */
class RoomyPieces {
  readonly #batches: AsyncGenerator<Batch>;
  readonly #takeRoom: () => Promise<Room>;
  readonly #held = new Set<Room>();
  #reading: Promise<unknown> = Promise.resolve();

  constructor(batches: AsyncGenerator<Batch>, takeRoom: () => Promise<Room>) {
    this.#batches = batches;
    this.#takeRoom = takeRoom;
  }

  /** Undefined at the end. A failure is kept until somebody waits for it. */
  next(): Promise<Piece | undefined> {
    const reading = this.#read();
    this.#reading = reading.catch(() => undefined);
    return reading;
  }

  async #read(): Promise<Piece | undefined> {
    const room = await this.#takeRoom();
    this.#held.add(room);
    const next = await this.#batches.next();
    if (next.done === true) return undefined;
    room.settle(next.value.body.length);
    return { batch: next.value, room: { release: () => this.#release(room) } };
  }

  #release(room: Room): void {
    if (this.#held.delete(room)) room.release();
  }

  /** Resolves when nothing is read any more; all room is given back. */
  async end(): Promise<void> {
    await this.#reading;
    await this.#batches.return(undefined);
    for (const room of this.#held) this.#release(room);
  }
}

/** Adds a batch; says of a line that is refused which one of the file it is. */
async function addTo(load: LargeLoad, batch: Batch, { unit }: Origin): Promise<void> {
  try {
    await load.add(batch.body);
  } catch (error) {
    const line = error instanceof EngineError ? error.details.line : undefined;
    if (!(error instanceof EngineError) || line === undefined) throw error;
    const inFile = lineIn(batch, line);
    const message = error.message.replace(/^line \d+/, `${unit} ${inFile}`);
    throw new EngineError(error.code, message, { ...error.details, line: inFile, cause: error });
  }
}

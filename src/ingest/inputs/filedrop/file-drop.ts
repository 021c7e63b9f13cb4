import { readInputPosition } from "../../../catalog/input-positions.ts";
import { LeaseLost } from "../../../catalog/refusals.ts";
import { Backoff } from "../../../core/backoff.ts";
import { pause } from "../../../core/clock.ts";
import type { RecordStore } from "../../../db/records.ts";
import type { Duty, DutyResult, DutyTurn } from "../../../feature/lease-loop.ts";
import { dropFileOf, type DropFile } from "./drop-file.ts";
import { DropRecords, isCommitted, isSettled } from "./drop-records.ts";
import { eachOf } from "./each-of.ts";
import { FileOutcomes, type FoundWork } from "./file-outcomes.ts";
import { FileLoader, type FileLoadOptions, type FileLoadPorts } from "./load-file.ts";
import { FILEDROP_METRICS } from "./metrics.ts";
import { decodePosition, sourceOf } from "./position.ts";
import { Retries } from "./retries.ts";
import { survey, type Surveyed } from "./survey.ts";
import { verdictOf } from "./verdict.ts";

/**
 * File-drop: files that somebody puts under a prefix of the object store become rows of the table that their key names.
 *
 *     look      list the prefix beside what is known of its files, by key
 *     read      the file as pieces of NDJSON, as long as it is the listed one (`read-file.ts`)
 *     load      pieces are sealed and uploaded as they come (`large-load.ts`)
 *     commit    all of them at once, with the file's position: from what was ingested under the key to this file
 *     record    what became of it (`file-outcomes.ts`); where that is wished the file is deleted
 *
 * One node at a time looks after a prefix, by a lease. Every file is stored exactly once: the commit moves the file's
 * position in its own transaction and carries the fence of the lease, so a node that lost the lease without noticing
 * commits nothing; a node that died between commit and record leaves the position, by which the next one makes the
 * record. A file that is gone loses its position: one that is dropped later under its name is another one.
 */
export type FileDropPorts = FileLoadPorts & { records: RecordStore };

export type FileDropOptions = FileLoadOptions & {
  prefix: string;
  deleteAfterIngest: boolean;
  /** Whether files appear before they are complete, as on a disk: then each must be the same in two looks. */
  growsInPlace: boolean;
};

/** Files that are read at the same time. */
const CONCURRENT_FILES = 4;
/** A file whose reader dies so often is at fault itself, and not the machine. */
const MOST_CRASHES = 3;
const SWEEP_MS = 3_600_000;
const LOG_MS = 60_000;
const PAUSE = { firstMs: 1_000, mostMs: 60_000 } as const;

/** The duty of whoever has the lease of the prefix: one look, and whatever it finds. */
export function createFileDrop(ports: FileDropPorts, options: FileDropOptions): Duty {
  const fileDrop = new FileDrop(ports, options);
  return (turn) => fileDrop.run(turn);
}

type Turn = DutyTurn & { records: DropRecords; loader: FileLoader; sights: Sights };
type LoadableFile = Extract<DropFile, { kind: "file" | "misplaced" }>;

/** Files of one look that are not settled: what each was, and when the oldest came. */
class Sights {
  readonly identities = new Map<string, string>();
  oldestMs = Infinity;
}

class FileDrop {
  readonly #ports: FileDropPorts;
  readonly #options: FileDropOptions;
  readonly #outcomes: FileOutcomes;
  readonly #retries: Retries;
  readonly #metrics;
  /** Of the look before. */
  #sights = new Sights();
  #unreadable: ReadonlyMap<string, Error> = new Map();
  #sweptAtMs = -Infinity;
  #loggedAtMs = -Infinity;

  constructor(ports: FileDropPorts, options: FileDropOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#outcomes = new FileOutcomes(ports, options);
    this.#retries = new Retries(ports);
    this.#metrics = FILEDROP_METRICS.of(ports.metrics);
  }

  /** Looks once; where the store or the catalog is away, again and again until it is back. */
  async run(turn: DutyTurn): Promise<DutyResult> {
    const { clock, random, log } = this.#ports;
    const backoff = new Backoff({ random, ...PAUSE });
    for (;;) {
      try {
        return await this.#look(turn);
      } catch (error) {
        if (turn.signal.aborted || error instanceof LeaseLost) throw error;
        if (clock.monotonicMs() - this.#loggedAtMs >= LOG_MS) {
          this.#loggedAtMs = clock.monotonicMs();
          log.error(
            { err: error, prefix: this.#options.prefix },
            "dropped files cannot be looked after for the moment",
          );
        }
        await pause(clock, backoff.next(), turn.signal);
        turn.signal.throwIfAborted();
      }
    }
  }

  async #look(dutyTurn: DutyTurn): Promise<DutyResult> {
    const { store, records: recordStore, clock } = this.#ports;
    const { prefix } = this.#options;
    const records = new DropRecords(recordStore, dutyTurn.lease);
    const loader = new FileLoader(this.#ports, this.#options, dutyTurn);
    const turn: Turn = { ...dutyTurn, records, loader, sights: new Sights() };
    const unreadable = new Map<string, Error>();
    const listing = store.list(`${prefix}/`, { onUnreadable: (folder, error) => unreadable.set(folder, error) });
    const isHidden = (key: string): boolean => [...unreadable.keys()].some((folder) => key.startsWith(folder));
    const surveyed = survey(listing, records.of(prefix), isHidden);
    await eachOf(surveyed, { most: CONCURRENT_FILES, signal: turn.signal }, (one) => this.#consider(one, turn));
    this.#sights = turn.sights;
    this.#count(turn.sights);
    await this.#tellOfUnreadable(unreadable, records);
    if (clock.monotonicMs() - this.#sweptAtMs >= SWEEP_MS) {
      await records.sweep(prefix);
      this.#sweptAtMs = clock.monotonicMs();
    }
    return { isIdle: turn.sights.identities.size === 0 };
  }

  /** A folder is told of once; the survey finds its record gone when it can be read again. */
  async #tellOfUnreadable(folders: ReadonlyMap<string, Error>, records: DropRecords): Promise<void> {
    const { prefix } = this.#options;
    for (const [key, error] of folders) {
      if (key === `${prefix}/`) throw error;
      if (this.#unreadable.has(key)) continue;
      const file = dropFileOf(`${key}any.json`, prefix);
      const { database, table } = file.kind === "file" ? file : { database: undefined, table: undefined };
      const info = { key, sizeBytes: 0, modifiedAtMs: 0, identity: "" };
      await this.#outcomes.unreadable({ info, database, table }, error, records);
    }
    this.#unreadable = folders;
    this.#metrics.unreadableFolders.set({ prefix }, folders.size);
  }

  #count({ identities, oldestMs }: Sights): void {
    const { prefix } = this.#options;
    const ageMs = oldestMs === Infinity ? 0 : Math.max(0, this.#ports.clock.nowMs() - oldestMs);
    this.#metrics.waiting.set({ prefix }, identities.size);
    this.#metrics.oldestWaiting.set({ prefix }, ageMs / 1000);
  }

  async #consider({ info, record }: Surveyed, turn: Turn): Promise<void> {
    if (info === undefined) {
      this.#retries.forget(record.key);
      return this.#outcomes.vanished(record, turn.records);
    }
    const file = dropFileOf(info.key, this.#options.prefix);
    if (file.kind === "other") return;
    if (record !== undefined && isSettled(record, info)) {
      return this.#outcomes.deleteIfWished(info, record.position, turn.records);
    }
    const { database, table } = file.kind === "file" ? file : { database: undefined, table: undefined };
    const work = { found: { info, database, table }, record };
    if (file.kind !== "unfinished" && this.#isReady(work) && (await this.#ingest(work, file, turn))) return;
    turn.sights.identities.set(info.key, info.identity);
    turn.sights.oldestMs = Math.min(turn.sights.oldestMs, info.modifiedAtMs);
  }

  #isReady({ found: { info } }: FoundWork): boolean {
    const isWhole = !this.#options.growsInPlace || this.#sights.identities.get(info.key) === info.identity;
    return isWhole && this.#retries.isDue(info.key, info.identity);
  }

  /** Whether nothing is left to do for the file as it is. */
  async #ingest(work: FoundWork, file: LoadableFile, turn: Turn): Promise<boolean> {
    try {
      if (file.kind === "misplaced") await this.#outcomes.rejected(work, { reason: file.reason }, turn.records);
      else if (!(await this.#load(work, file, turn))) return false;
      this.#retries.forget(work.found.info.key);
      return true;
    } catch (error) {
      if (turn.signal.aborted) throw error;
      return this.#failed(work, error, turn);
    }
  }

  /** False when the file's position is not where it was said to be: the next look sees. */
  async #load(work: FoundWork, file: Extract<DropFile, { kind: "file" }>, turn: Turn): Promise<boolean> {
    const { info } = work.found;
    const known = await readInputPosition(this.#ports.records, sourceOf(info.key));
    if (known !== undefined && isCommitted(known.position, info)) {
      // Whoever committed it had no time to say so.
      const { rows } = decodePosition(known.position);
      const ingested = { rows, misfits: undefined, snapshotId: known.snapshotId, position: known.position };
      await this.#outcomes.ingested(work, ingested, turn.records);
      return true;
    }
    const loaded = await turn.loader.load({ info, file, from: known?.position });
    if (loaded.kind === "moved") return false;
    this.#metrics.files.inc({ outcome: "ingested" });
    this.#metrics.rows.inc(loaded.rows);
    this.#metrics.bytes.inc(info.sizeBytes);
    const { rows, misfits, snapshot, position } = loaded;
    await this.#outcomes.ingested(work, { rows, misfits, snapshotId: snapshot.id, position }, turn.records);
    return true;
  }

  async #failed(work: FoundWork, error: unknown, { records }: Turn): Promise<boolean> {
    const { key, identity } = work.found.info;
    const verdict = verdictOf(error);
    if (verdict.kind === "halted") throw error;
    if (verdict.kind === "changed") return false;
    const { refusal } = verdict;
    const isHopeless =
      verdict.kind === "failed" && verdict.isCrash && this.#retries.failed(key, identity) >= MOST_CRASHES;
    if (verdict.kind === "rejected" || isHopeless) {
      await this.#outcomes.rejected(work, refusal, records);
      this.#retries.forget(key);
      return true;
    }
    if (verdict.kind === "failed" && !verdict.isCrash) this.#retries.failed(key, identity);
    await this.#outcomes.postponed(work, { state: verdict.kind, refusal }, records);
    return false;
  }
}

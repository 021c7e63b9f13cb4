import type { Log } from "../../../core/log.ts";
import type { Metrics } from "../../../core/metrics.ts";
import type { Clock } from "../../../core/clock.ts";
import { systemCodeOf } from "../../../core/errors.ts";
import type { ObjectInfo, ObjectStore } from "../../../io/objectstore/objectstore.ts";
import {
  isCommitted,
  type DropRecord,
  type DropRecords,
  type FoundFile,
  type Ingested,
  type Refusal,
} from "./drop-records.ts";
import { FILEDROP_METRICS } from "./metrics.ts";
import { deleteReport, writeReport } from "./report.ts";

export type OutcomePorts = { store: ObjectStore; clock: Clock; log: Log; metrics: Metrics };

/** A file as it was found, and what was known of it until now. */
export type FoundWork = { found: FoundFile; record: DropRecord | undefined };

/** Says what became of files: in the catalog, beside the file, in the log, and in numbers. */
export class FileOutcomes {
  readonly #ports: OutcomePorts;
  readonly #deleteAfterIngest: boolean;
  readonly #metrics;

  constructor(ports: OutcomePorts, { deleteAfterIngest }: { deleteAfterIngest: boolean }) {
    this.#ports = ports;
    this.#deleteAfterIngest = deleteAfterIngest;
    this.#metrics = FILEDROP_METRICS.of(ports.metrics);
  }

  /** Its rows are committed, with that position. */
  async ingested(
    { found, record }: FoundWork,
    { position, ...ingested }: Ingested & { position: string },
    records: DropRecords,
  ): Promise<void> {
    await records.ingested(found, ingested);
    if (record?.state === "rejected") await deleteReport(this.#ports.store, found.info.key);
    await this.deleteIfWished(found.info, position, records);
  }

  /** Deletes a file that is ingested, if that is wished and the file is still the one that was. */
  async deleteIfWished(info: ObjectInfo, position: string | undefined, records: DropRecords): Promise<void> {
    if (!this.#deleteAfterIngest || !isCommitted(position, info)) return;
    const { store } = this.#ports;
    if ((await store.head(info.key))?.identity !== info.identity) return;
    const remove = (): Promise<void> => store.delete([info.key], { isBesideOthers: true });
    if (!(await this.#isDone(info.key, "could not delete an ingested file", remove))) return;
    await records.forget({ key: info.key, position }, "deleted");
    this.#metrics.files.inc({ outcome: "deleted" });
  }

  /** It is wrong, and stays where it is with a report beside it. */
  async rejected({ found }: FoundWork, refusal: Refusal, records: DropRecords): Promise<void> {
    const { store, clock, log } = this.#ports;
    const report = { refusal, rejectedAtMs: clock.nowMs() };
    await this.#isDone(found.info.key, "could not write the report of a rejected file", () =>
      writeReport(store, found.info, report),
    );
    await records.refused(found, "rejected", refusal);
    this.#metrics.files.inc({ outcome: "rejected" });
    log.warn({ key: found.info.key, ...refusal }, "a dropped file was rejected");
  }

  /** It cannot be loaded for the moment. */
  async postponed(
    { found, record }: FoundWork,
    { state, refusal }: { state: "waiting" | "failed"; refusal: Refusal },
    records: DropRecords,
  ): Promise<void> {
    // A file that waits is looked at in every look, and says so once.
    if (state === "waiting" && record?.state === "waiting" && record.identity === found.info.identity) return;
    await records.refused(found, state, refusal);
    if (state === "failed") this.#metrics.files.inc({ outcome: "failed" });
    this.#ports.log.warn({ key: found.info.key, ...refusal }, "a dropped file cannot be loaded yet");
  }

  /** What is in the folder cannot be known: its files are neither new nor gone. */
  async unreadable(found: FoundFile, error: Error, records: DropRecords): Promise<void> {
    const { key } = found.info;
    const reason = `the folder cannot be read (${systemCodeOf(error)}): let the engine's user read and search it`;
    await records.refused(found, "failed", { reason });
    this.#ports.log.warn({ key, reason }, "a folder of dropped files cannot be read; the others are");
  }

  /** There is no such file any more. */
  async vanished({ key, state, position }: DropRecord, records: DropRecords): Promise<void> {
    if (state === "deleted" || state === "gone") return;
    // Also of a file that was ingested before it was changed and then rejected: its position goes with it.
    if (position !== undefined) await records.forget({ key, position }, "gone");
    if (state === "rejected") {
      await this.#isDone(key, "could not delete the report of a file that is gone", () =>
        deleteReport(this.#ports.store, key),
      );
    }
    if (state !== "ingested") await records.drop(key);
    else if (position === undefined) await records.forget({ key, position }, "gone");
  }

  /** Whether that could be done: a drop folder that may only be read must not keep other files from being looked at. */
  async #isDone(key: string, otherwise: string, change: () => Promise<unknown>): Promise<boolean> {
    try {
      await change();
      return true;
    } catch (error) {
      this.#ports.log.warn({ err: error, key }, otherwise);
      return false;
    }
  }
}

import { closeSync, fsync, openSync } from "node:fs";
import { promisify } from "node:util";
import { nextTurn } from "../../core/clock.ts";

const fsyncing = promisify(fsync);

/**
 * The write-ahead log of a catalog, to sync what a connection has committed without: SQLite syncs on the thread that
 * commits. The log is there, and the same, as long as any connection to the file is open; and to close it drops no
 * locks, which lie on the files beside it.
 */
export class LogFile {
  readonly #descriptor: number;
  /** The next sync, until it begins. */
  #next: Promise<void> | undefined;

  constructor(catalogPath: string) {
    this.#descriptor = openSync(`${catalogPath}-wal`, "r+");
  }

  /**
   * Resolves when everything that was committed before is durable. Rejects when that cannot be known. It begins when this
   * thread has done what it is at, and stands for all who have asked until then.
   */
  sync(): Promise<void> {
    this.#next ??= this.#syncNext();
    return this.#next;
  }

  async #syncNext(): Promise<void> {
    await nextTurn();
    this.#next = undefined;
    await fsyncing(this.#descriptor);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

import { closeSync, fdatasync, openSync } from "node:fs";
import { promisify } from "node:util";

const syncing = promisify(fdatasync);

/**
 * The write-ahead log of a catalog, to sync what a connection has committed without: SQLite syncs on the thread that
 * commits. The log is there, and the same, as long as any connection to the file is open; and to close it drops no
 * locks, which lie on the files beside it.
 */
export class LogFile {
  readonly #descriptor: number;

  constructor(catalogPath: string) {
    this.#descriptor = openSync(`${catalogPath}-wal`, "r+");
  }

  /** Resolves when everything that was committed before is durable. Rejects when that cannot be known. */
  sync(): Promise<void> {
    return syncing(this.#descriptor);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Clock, TimerHandle } from "../../core/clock.ts";
import { systemCodeOf } from "../../core/errors.ts";
import type { Spooled } from "../stream/spool.ts";

/** What one query took, measured in its process. */
export type QueryUsage = {
  /** CPU time of all threads, from the parse on. */
  cpuMs: number;
  /** The most that lay in the spill folder at one time, as sampled. */
  spillBytes: number;
  resultBytes: number;
};

/** DuckDB deletes what it spilled as it goes, so the size is looked at while the query runs. */
const SAMPLE_MS = 50;

/** Measures one query at a time. */
export class UsageMeter {
  readonly #clock: Clock;
  readonly #spillFolder: string;
  #cpu = process.cpuUsage();
  #spillBytes = 0;
  #sampling: TimerHandle | undefined;

  constructor(clock: Clock, spillFolder: string) {
    this.#clock = clock;
    this.#spillFolder = spillFolder;
  }

  start(): void {
    this.#cpu = process.cpuUsage();
    this.#spillBytes = 0;
  }

  /** Runs the part of the query that may spill. */
  async sample<T>(work: () => Promise<T>): Promise<T> {
    this.#sampling?.cancel();
    this.#sampling = this.#clock.every(SAMPLE_MS, () => {
      this.#spillBytes = Math.max(this.#spillBytes, sizeOfFolder(this.#spillFolder));
    });
    try {
      return await work();
    } finally {
      this.#sampling.cancel();
    }
  }

  /** The most that was spilled at one time so far. */
  get spillBytes(): number {
    return this.#spillBytes;
  }

  usage(data: Spooled): QueryUsage {
    const { user, system } = process.cpuUsage(this.#cpu);
    return {
      cpuMs: (user + system) / 1000,
      spillBytes: this.#spillBytes,
      resultBytes: "bytes" in data ? data.bytes.byteLength : statSync(data.file).size,
    };
  }
}

/** Bytes of the files in the folder, 0 where there is none; files may go while it looks. */
function sizeOfFolder(folder: string): number {
  try {
    return readdirSync(folder).reduce((sum, name) => sum + sizeOfFile(join(folder, name)), 0);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return 0;
    throw error;
  }
}

function sizeOfFile(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

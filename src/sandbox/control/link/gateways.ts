import { NOW, type RecordStore } from "../../../db/records.ts";
import type { Clock, TimerHandle } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { Service } from "../../../core/lifecycle.ts";
import type { Log } from "../../../core/log.ts";
import { textOf } from "../../../fabric/job.ts";

export type GatewaysOptions = {
  records: RecordStore;
  /** Where nodes reach this process; undefined for one that they cannot reach, or that answers no routes. */
  url: string | undefined;
  clock: Clock;
  newId: IdSource;
  log: Log;
};

const BEAT_MS = 3_000;
/** One that was silent for so long is taken to be gone; and its row is removed after so long. */
const STALE_MS = 12_000;
const REMOVED_AFTER_MS = 60_000;
/** More than this nobody runs. */
const MOST = 1_000;

/**
 * The processes of the control plane that nodes connect to, as each of them writes itself down. A process that is killed
 * stays in the list for a moment; nodes try to dial it until then.
 */
export class Gateways implements Service {
  readonly name = "sandbox gateways";
  readonly #options: GatewaysOptions;
  readonly #id: string;
  #urls: readonly string[] = [];
  #others: readonly string[] = [];
  #timer: TimerHandle | undefined;
  #beating: Promise<void> | undefined;
  #isLeaving = false;

  constructor(options: GatewaysOptions) {
    this.#options = options;
    this.#id = options.newId();
  }

  /** All of them, this process among them. */
  get urls(): readonly string[] {
    return this.#urls;
  }

  /** All but this process: what a node that is in it dials. */
  get others(): readonly string[] {
    return this.#others;
  }

  async run(): Promise<void> {
    await this.#beat();
    this.#timer = this.#options.clock.every(BEAT_MS, () => void this.#beat());
  }

  /** Nodes are told to go elsewhere. */
  async drain(): Promise<void> {
    this.#isLeaving = true;
    await this.#beating;
    await this.#remove();
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    if (!this.#isLeaving) await this.drain();
  }

  #beat(): Promise<void> {
    this.#beating ??= this.#writeAndRead().finally(() => (this.#beating = undefined));
    return this.#beating;
  }

  /** Never rejects: what could not be read stays as it was. */
  async #writeAndRead(): Promise<void> {
    const { records, url, log } = this.#options;
    try {
      if (url !== undefined && !this.#isLeaving) {
        await records.write({
          sql:
            "INSERT INTO sandbox_gateways (id, url, seen_at_ms) VALUES (?, ?, ?) " +
            "ON CONFLICT (id) DO UPDATE SET url = excluded.url, seen_at_ms = excluded.seen_at_ms",
          values: [this.#id, url, NOW],
        });
        await records.write({
          sql: "DELETE FROM sandbox_gateways WHERE seen_at_ms < ?",
          values: [{ nowPlusMs: -REMOVED_AFTER_MS }],
        });
      }
      const rows = await records.rows(
        "SELECT id, url FROM sandbox_gateways WHERE seen_at_ms >= ? ORDER BY id LIMIT ?",
        [{ nowPlusMs: -STALE_MS }, MOST],
      );
      this.#urls = urlsOf(rows);
      this.#others = urlsOf(rows.filter((row) => textOf(row, "id") !== this.#id)).filter((other) => other !== url);
    } catch (error) {
      log.warn({ reason: messageOf(error) }, "the list of gateways could not be kept");
    }
  }

  async #remove(): Promise<void> {
    const { records, log } = this.#options;
    try {
      await records.write({ sql: "DELETE FROM sandbox_gateways WHERE id = ?", values: [this.#id] });
    } catch (error) {
      log.warn({ reason: messageOf(error) }, "nodes are told of this process for a little longer");
    }
  }
}

/** Each once: a process that was started again has the address of the one before. */
function urlsOf(rows: readonly Record<string, unknown>[]): string[] {
  return [...new Set(rows.map((row) => textOf(row, "url")))];
}

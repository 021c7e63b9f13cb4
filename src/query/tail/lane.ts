import type { Catalog, TableRecord } from "../../catalog/catalog.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { formatPosition } from "./position.ts";
import type { FilterRead, TailedTable, TailScanner } from "./scanner.ts";
import { sliceOf, type SliceLimits } from "./slice.ts";
import type { Tail, TailEnd } from "./tail.ts";

export type LaneOptions = {
  catalog: Pick<Catalog, "resolve" | "additions">;
  scanner: Pick<TailScanner, "read">;
  log: Log;
  /** Is told of filters that are too slow to share scans. */
  onSlow: (tail: Tail) => void;
};

/** What one scan reads at most; the first extent is read whatever it has. */
const SLICE: SliceLimits = { extents: 64, rows: 100_000, sizeBytes: 64 * 1024 * 1024 };
/** Looks in a row that failed before its tails are told to come again. */
const MOST_FAILURES = 30;

/**
 * Tails of one table that are read for together: those that are equally far share a scan. It looks when it is woken, once
 * more when it was woken meanwhile, and goes on until none of its tails that can take rows is behind the head.
 */
export class TailLane {
  /** Tells lanes apart. */
  readonly key: string;
  readonly table: TailedTable;
  readonly #options: LaneOptions;
  readonly #tails = new Set<Tail>();
  readonly #stop = new AbortController();
  #isLooking = false;
  #isDue = false;
  #seenHead = 0;
  #failures = 0;

  constructor(key: string, table: TailedTable, options: LaneOptions) {
    this.key = key;
    this.table = table;
    this.#options = options;
  }

  get tails(): ReadonlySet<Tail> {
    return this.#tails;
  }

  /** Whether there may be something to look at, with the head at that snapshot. */
  isBehind(head: number): boolean {
    return this.#failures > 0 || this.#seenHead < head;
  }

  add(tail: Tail): void {
    this.#tails.add(tail);
  }

  remove(tail: Tail): void {
    this.#tails.delete(tail);
    if (this.#tails.size === 0) this.#stop.abort();
  }

  wake(): void {
    this.#isDue = true;
    if (!this.#isLooking) void this.#run();
  }

  /** One of its tails can take more. */
  drained(tail: Tail): void {
    if (tail.position.snapshot <= this.#seenHead) this.wake();
  }

  async #run(): Promise<void> {
    this.#isLooking = true;
    while (this.#isDue && this.#tails.size > 0) {
      this.#isDue = false;
      try {
        await this.#look();
        this.#failures = 0;
      } catch (error) {
        this.#failed(error);
        break;
      }
    }
    this.#isLooking = false;
  }

  /** It is tried again when somebody wakes it, at the latest by the poll. */
  #failed(error: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.#isDue = false;
    const { database, table } = this.table;
    const failures = ++this.#failures;
    this.#options.log[failures === 1 ? "warn" : "debug"](
      { database, table, failures, reason: messageOf(error) },
      "a table could not be read for its live tails; it is tried again",
    );
    if (failures < MOST_FAILURES) return;
    const end = { code: "unavailable", message: "the table could not be read for some time", reconnect: true };
    for (const tail of this.#tails) tail.end(end);
  }

  async #look(): Promise<void> {
    const { catalog } = this.#options;
    const { database, table } = this.table;
    const resolution = await catalog.resolve(database, [table]);
    if (!this.#isThere(resolution?.tables[0])) return;
    this.#seenHead = resolution?.head.id ?? 0;
    // All are over before the next look: a tail that is read for twice at a time would show rows twice.
    const steps = await Promise.allSettled([...this.#groups().values()].map((group) => this.#step(group)));
    const failed = steps.find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
    if (this.#groups().size > 0) this.#isDue = true;
  }

  /** A table that was dropped, or made anew under the name, ends its tails. */
  #isThere(table: TableRecord | undefined): boolean {
    if (table?.id === this.table.tableId) return true;
    const message = `the table ${JSON.stringify(this.table.table)} was dropped`;
    for (const tail of this.#tails) tail.end({ code: "table_not_found", message, reconnect: false });
    return false;
  }

  /** Tails that can take rows and are behind the head, by how far they are. */
  #groups(): Map<string, Tail[]> {
    const groups = new Map<string, Tail[]>();
    for (const tail of this.#tails) {
      if (!tail.isReady || tail.position.snapshot > this.#seenHead) continue;
      const key = formatPosition(tail.position);
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [tail]);
      else group.push(tail);
    }
    return groups;
  }

  /** Reads the next slice for tails that are equally far. */
  async #step(tails: readonly Tail[]): Promise<void> {
    const { catalog, scanner } = this.#options;
    const position = tails[0]?.position ?? { snapshot: 0, row: 0 };
    const request = {
      tableId: this.table.tableId,
      from: position.snapshot,
      upTo: this.#seenHead,
      limit: SLICE.extents,
    };
    try {
      const slice = sliceOf(await catalog.additions(request), position, SLICE);
      const filters = [...new Set(tails.map(({ filter }) => filter))];
      const reads = await scanner.read(this.table, slice, filters, this.#stop.signal);
      for (const tail of tails) this.#give(tail, reads.get(tail.filter));
    } catch (error) {
      const end = expiryOf(error);
      if (end === undefined) throw error;
      for (const tail of tails) tail.end(end);
    }
  }

  #give(tail: Tail, read: FilterRead | undefined): void {
    if (read === undefined) return;
    if ("failure" in read) {
      const { code, message } = read.failure;
      tail.end({ code, message, reconnect: false });
      return;
    }
    tail.push(read.rows, read.position);
    if (read.isSlow) this.#options.onSlow(tail);
  }
}

function expiryOf(error: unknown): TailEnd | undefined {
  if (!(error instanceof EngineError) || error.code !== "snapshot_expired") return undefined;
  return { code: error.code, message: error.message, reconnect: false };
}

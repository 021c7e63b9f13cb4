import type { TableRecord } from "../catalog/catalog.ts";
import { releaseShared } from "../core/buffer-pool.ts";
import { nowNs } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import { checkName, foldName } from "../core/names.ts";
import { DEFAULT_SHAPE } from "../format/types.ts";
import { ByteBudget } from "./byte-budget.ts";
import { runFlush, type FlushBody, type FlushPorts } from "./flush.ts";
import type { IngestAck, IngestRequest, IngestService } from "./ingest.ts";
import { KeysUnderWay } from "./keys-under-way.ts";
import { RateLimit } from "./rate-limit.ts";
import { Stager, type StagerLimits } from "./stager.ts";

export type IngestServiceOptions = FlushPorts & {
  staging: StagerLimits;
  /** Bytes of bodies that may be accepted and not yet answered. */
  maxInflightBytes: number;
  /** Requests per second and database, and how many may come at once; a rate of 0 sets no limit. */
  rate: { perSec: number; burst: number };
};

type StagedBody = FlushBody & { rows: number; sizeBytes: number };

/** Reserved for a body whose length the client does not announce; the reservation grows as the body arrives. */
const UNKNOWN_BODY_BYTES = 64 * 1024;
const NEWLINE = 10;
const MAX_CACHED_TABLES = 10_000;

export function createIngestService(options: IngestServiceOptions): IngestService {
  return new StagedIngest(options);
}

class StagedIngest implements IngestService {
  readonly #options: IngestServiceOptions;
  readonly #budget: ByteBudget;
  readonly #rate: RateLimit;
  readonly #keys = new KeysUnderWay<IngestAck>();
  /** By table id; as many as tables were written to. */
  readonly #stagers = new Map<number, Stager<StagedBody>>();
  /**
   * Tables by the names that requests gave them. Tables are never dropped or renamed, so identity does not go stale;
   * columns do, and every flush reads them anew.
   */
  readonly #tables = new Map<string, TableRecord>();
  #draining = false;
  #accepted = 0;
  #onIdle: (() => void)[] = [];

  constructor(options: IngestServiceOptions) {
    this.#options = options;
    const { clock, metrics } = options;
    this.#budget = new ByteBudget({
      maxBytes: options.maxInflightBytes,
      clock,
      onRefused: (reason) => metrics.ingestRefused.inc({ reason }),
      onChange: (usedBytes) => metrics.ingestQueuedBytes.set(usedBytes),
    });
    this.#rate = new RateLimit({
      ratePerSec: options.rate.perSec,
      burst: options.rate.burst,
      clock,
      onRefused: () => metrics.ingestRefused.inc({ reason: "rate" }),
    });
  }

  async ingest(request: IngestRequest): Promise<IngestAck> {
    if (this.#draining) throw new EngineError("unavailable", "the server is shutting down; retry elsewhere");
    const { metrics } = this.#options;
    this.#accepted++;
    metrics.ingestQueuedRequests.set(this.#accepted);
    try {
      const ack = await this.#ingest(request);
      metrics.ingestRequests.inc({ outcome: ack.replayed ? "replayed" : "committed" });
      return ack;
    } catch (error) {
      metrics.ingestRequests.inc({ outcome: error instanceof EngineError ? error.code : "internal" });
      throw error;
    } finally {
      this.#accepted--;
      metrics.ingestQueuedRequests.set(this.#accepted);
      if (this.#accepted === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  async drain(): Promise<void> {
    this.#draining = true;
    if (this.#accepted > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  async #ingest(request: IngestRequest): Promise<IngestAck> {
    // Names are checked first: buckets are kept by them.
    this.#rate.take(foldName(checkName("database", request.database)));
    const table = await this.#table(request);
    const key = request.idempotencyKey;
    if (key === undefined) return this.#receive(request, table, undefined);
    return this.#keys.run(
      `${table.id} ${key}`,
      async () => (await this.#replay(table, key)) ?? this.#receive(request, table, key),
      (first) => ({ ...first, replayed: true }),
    );
  }

  async #table(request: IngestRequest): Promise<TableRecord> {
    const spelling = `${request.database}/${request.table}`;
    const cached = this.#tables.get(spelling);
    if (cached !== undefined) return cached;
    const table = await this.#findOrCreate(request);
    if (this.#tables.size >= MAX_CACHED_TABLES) this.#tables.clear();
    this.#tables.set(spelling, table);
    return table;
  }

  async #findOrCreate(request: IngestRequest): Promise<TableRecord> {
    const { catalog } = this.#options;
    const known = await catalog.table(request.database, request.table);
    if (known !== undefined) return known;
    const database = checkName("database", request.database);
    const name = checkName("table", request.table);
    if (!request.autoCreate) {
      throw new EngineError("table_not_found", `table ${database}.${name} does not exist, and X-Auto-Create is false`);
    }
    return (await catalog.createTable({ database, name, columns: DEFAULT_SHAPE })).table;
  }

  async #replay(table: TableRecord, key: string): Promise<IngestAck | undefined> {
    const entry = await this.#options.catalog.ledgerEntry(table.id, key);
    if (entry === undefined) return undefined;
    const { snapshotId, extentCount, rows, sizeBytes } = entry;
    return { snapshotId, extentCount, rows, sizeBytes, replayed: true };
  }

  async #receive(request: IngestRequest, table: TableRecord, key: string | undefined): Promise<IngestAck> {
    const reservation = this.#budget.reserve(foldName(table.database), request.expectedBytes ?? UNKNOWN_BODY_BYTES);
    let bytes: Uint8Array | undefined;
    try {
      bytes = await request.readBody((sizeBytes) => reservation.growTo(sizeBytes));
      reservation.settle(bytes.byteLength);
      const ack = await this.#stage(table, bytes, request.evolve, key);
      const { metrics } = this.#options;
      metrics.ingestRows.inc({ database: table.database }, ack.rows);
      metrics.ingestBytes.inc({ database: table.database }, bytes.byteLength);
      return ack;
    } finally {
      // The flush has answered, so no thread reads the body any more.
      if (bytes !== undefined) releaseShared(bytes);
      reservation.release();
    }
  }

  #stage(table: TableRecord, bytes: Uint8Array, evolve: boolean, key: string | undefined): Promise<IngestAck> {
    const answer = Promise.withResolvers<IngestAck>();
    this.#stager(table).add({
      bytes,
      evolve,
      arrivedAtNs: nowNs(this.#options.clock),
      ...(key === undefined ? {} : { key }),
      answer,
      rows: estimateLines(bytes),
      sizeBytes: bytes.byteLength,
    });
    return answer.promise;
  }

  #stager(table: TableRecord): Stager<StagedBody> {
    const known = this.#stagers.get(table.id);
    if (known !== undefined) return known;
    const { clock, staging } = this.#options;
    const target = { database: table.database, table: table.name };
    const stager = new Stager<StagedBody>({
      clock,
      limits: staging,
      flush: (items, sealed) => runFlush(this.#options, target, items, sealed),
    });
    this.#stagers.set(table.id, stager);
    return stager;
  }
}

/** Lines are counted here and extrapolated over the rest: a large body must not hold up the thread that receives. */
const COUNTED_BYTES = 64 * 1024;

/** About how many lines the body has, blank ones included: it decides when to flush, and nothing else. */
function estimateLines(bytes: Uint8Array): number {
  // A Buffer searches with memchr; a plain Uint8Array takes five times as long.
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, COUNTED_BYTES));
  let lines = 0;
  for (let i = buffer.indexOf(NEWLINE); i !== -1; i = buffer.indexOf(NEWLINE, i + 1)) lines++;
  return Math.ceil((Math.max(lines, 1) * bytes.byteLength) / Math.max(buffer.byteLength, 1));
}

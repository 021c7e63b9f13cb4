import { INGEST_METRICS } from "./metrics.ts";
import { checkMayUse } from "../auth/caller.ts";
import type { TableRecord } from "../catalog/catalog.ts";
import { releaseShared } from "../core/buffer-pool.ts";
import { nowNs, type Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { Metrics } from "../core/metrics.ts";
import { checkName, foldName } from "../core/names.ts";
import { encodingOf } from "../format/encodings.ts";
import { ByteBudget } from "./byte-budget.ts";
import { heldUp, type FlushBody, type Target } from "./flush.ts";
import { asReplayOf, readingOf, type IngestAck, type IngestRequest, type IngestService } from "./ingest.ts";
import { KeysUnderWay } from "./keys-under-way.ts";
import { RateLimit } from "./rate-limit.ts";
import { Batcher, type BatchLimits } from "./batcher.ts";
import type { KeyState } from "./tables.ts";

/** What both modes of ingest share: admission, keys under way, and bodies that gather for flushes. */
export type ReceiverOptions = {
  clock: Clock;
  metrics: Metrics;
  batching: BatchLimits;
  /** Bytes of bodies that may be accepted and not yet answered. */
  maxInflightBytes: number;
  /** The bound itself, where other inputs share it: see `createIngestBudget`. */
  budget?: ByteBudget;
  /** Requests per second and database, and how many may come at once; a rate of 0 sets no limit. */
  rate: { perSec: number; burst: number };
};

/** What a mode of ingest does in its own way. */
export type WritePath = {
  /** The table that the request names; undefined when it is missing and may be created, which the flush does. */
  table(request: IngestRequest): Promise<TableRecord | undefined>;
  /** The acknowledgement of a key that was applied before, or when it was free. The request came at `receivedAtMs`. */
  keyState(table: TableRecord | undefined, key: string, receivedAtMs: number): Promise<KeyState>;
  /** Runs a flush to its end, and says when it is sealed. Never rejects: failures go to the bodies. */
  flush(target: Target, bodies: FlushBody[], onSealed: () => void): Promise<void>;
};

/** What a request writes to. `name` tells tables apart, whatever their spelling; `exists` goes by when the request came. */
type Destination = { target: Target; name: string; exists: boolean };
type FreeKey = Pick<FlushBody, "key" | "keyFreeAtMs">;
type GatheredBody = FlushBody & { rows: number; sizeBytes: number };

/** Reserved for a body whose length the client does not announce; the reservation grows as the body arrives. */
const UNKNOWN_BODY_BYTES = 64 * 1024;
/** Far longer than it ever takes, and far shorter than a key lives. */
const LOOKED_UP_WITHIN_MS = 30 * 60_000;

/** The bound on bytes in flight of all inputs of this process. */
export function createIngestBudget({
  clock,
  metrics,
  maxInflightBytes: maxBytes,
}: Pick<ReceiverOptions, "clock" | "metrics" | "maxInflightBytes">): ByteBudget {
  return new ByteBudget({
    maxBytes,
    clock,
    onRefused: (reason) => INGEST_METRICS.of(metrics).ingestRefused.inc({ reason }),
    onChange: (usedBytes) => INGEST_METRICS.of(metrics).ingestQueuedBytes.set(usedBytes),
  });
}

export class Receiver implements IngestService {
  readonly #options: ReceiverOptions;
  readonly #path: WritePath;
  readonly #budget: ByteBudget;
  readonly #rate: RateLimit;
  readonly #keys = new KeysUnderWay<IngestAck>();
  /** By `Destination.name`; as many as tables were written to. */
  readonly #batchers = new Map<string, Batcher<GatheredBody>>();
  #draining = false;
  #accepted = 0;
  #onIdle: (() => void)[] = [];

  constructor(options: ReceiverOptions, path: WritePath) {
    this.#options = options;
    this.#path = path;
    const { clock } = options;
    const metrics = INGEST_METRICS.of(options.metrics);
    metrics.ingestQueuedLimit.watch({}, () => options.maxInflightBytes);
    this.#budget = options.budget ?? createIngestBudget(options);
    this.#rate = new RateLimit({
      ratePerSec: options.rate.perSec,
      burst: options.rate.burst,
      clock,
      onRefused: () => metrics.ingestRefused.inc({ reason: "rate" }),
    });
  }

  async ingest(request: IngestRequest): Promise<IngestAck> {
    if (this.#draining) throw new EngineError("unavailable", "the server is shutting down; retry elsewhere");
    const metrics = INGEST_METRICS.of(this.#options.metrics);
    this.#accepted++;
    metrics.ingestQueuedRequests.set(this.#accepted);
    try {
      const ack = await this.#ingest(request);
      metrics.ingestRequests.inc({ outcome: outcomeOf(ack) });
      return ack;
    } catch (error) {
      metrics.ingestRequests.inc({
        outcome: error instanceof EngineError ? error.code : "internal",
      });
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
    const { clock } = this.#options;
    const received = { atMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
    // Names are checked first: buckets are kept by them.
    const database = checkName("database", request.database);
    checkMayUse(request.caller, database);
    this.#rate.take(foldName(database));
    const table = await this.#path.table(request);
    const to = destinationOf(request, table);
    const key = request.idempotencyKey;
    if (key === undefined) return this.#receive(request, to, {});
    return this.#keys.run(
      `${to.name} ${key}`,
      async () => {
        const state = await this.#path.keyState(table, key, received.atMs);
        if ("ack" in state) return state.ack;
        // A key that was looked up hours after its request came may have been used and forgotten in between. From here
        // on the commit sees to that.
        const tookMs = Math.max(clock.nowMs() - received.atMs, clock.monotonicMs() - received.monotonicMs);
        if (tookMs > LOOKED_UP_WITHIN_MS) throw heldUp();
        return this.#receive(request, to, { key, keyFreeAtMs: state.freeAtMs });
      },
      asReplayOf,
    );
  }

  async #receive(request: IngestRequest, to: Destination, key: FreeKey): Promise<IngestAck> {
    const { database } = to.target;
    const reservation = this.#budget.reserve(foldName(database), request.expectedBytes ?? UNKNOWN_BODY_BYTES);
    let bytes: Uint8Array | undefined;
    try {
      bytes = await request.readBody((sizeBytes) => reservation.growTo(sizeBytes));
      reservation.settle(bytes.byteLength);
      const ack = await this.#batch(to, bytes, request, key);
      const metrics = INGEST_METRICS.of(this.#options.metrics);
      const labels = { database: metrics.databaseLabel.of(database) };
      metrics.ingestRows.inc(labels, ack.rows);
      metrics.ingestBytes.inc(labels, bytes.byteLength);
      return ack;
    } finally {
      // The flush has answered, so no thread reads the body any more.
      if (bytes !== undefined) releaseShared(bytes);
      reservation.release();
    }
  }

  #batch(to: Destination, bytes: Uint8Array, request: IngestRequest, key: FreeKey): Promise<IngestAck> {
    const answer = Promise.withResolvers<IngestAck>();
    this.#batcher(to).add({
      bytes,
      evolve: request.evolve,
      ...(request.inferTypes === undefined ? {} : { inferTypes: request.inferTypes }),
      ...readingOf(request),
      autoCreate: request.autoCreate,
      ...(request.source === undefined ? {} : { source: request.source }),
      ...(request.columns === undefined ? {} : { columns: request.columns }),
      arrivedAtNs: nowNs(this.#options.clock),
      ...key,
      answer,
      rows: encodingOf(request.encoding).estimateLines(bytes),
      sizeBytes: bytes.byteLength,
    });
    return answer.promise;
  }

  async #flush(target: Target, items: FlushBody[], sealed: () => void): Promise<void> {
    const { clock, metrics } = this.#options;
    const startedMs = clock.monotonicMs();
    await this.#path.flush(target, items, sealed);
    INGEST_METRICS.of(metrics).flushDuration.observe((clock.monotonicMs() - startedMs) / 1000);
  }

  #batcher({ target, name, exists }: Destination): Batcher<GatheredBody> {
    const known = this.#batchers.get(name);
    if (known !== undefined) return known;
    const { clock, batching } = this.#options;
    const batcher: Batcher<GatheredBody> = new Batcher<GatheredBody>({
      clock,
      limits: batching,
      flush: (items, sealed) => this.#flush(target, items, sealed),
      // Refused requests for tables that never come to be must not add up.
      onIdle: () => void (!exists && this.#batchers.get(name) === batcher && this.#batchers.delete(name)),
    });
    this.#batchers.set(name, batcher);
    return batcher;
  }
}

function destinationOf(request: IngestRequest, table: TableRecord | undefined): Destination {
  const { database, table: name } = request;
  const target = table === undefined ? { database, table: name } : { database: table.database, table: table.name };
  // Bodies with a place in an input gather apart: a conflict of theirs must not have those of clients sealed again.
  const kind = request.source === undefined ? "" : " from inputs";
  return { target, name: `${foldName(target.database)}/${foldName(target.table)}${kind}`, exists: table !== undefined };
}

function outcomeOf(ack: IngestAck): string {
  if (ack.replayed) return "replayed";
  return ack.staged === true ? "staged" : "committed";
}

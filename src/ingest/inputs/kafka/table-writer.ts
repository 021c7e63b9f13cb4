import { ANONYMOUS } from "../../../auth/caller.ts";
import type { Catalog } from "../../../catalog/catalog.ts";
import type { SourceStep } from "../../../catalog/input-positions.ts";
import { PositionMoved } from "../../../catalog/refusals.ts";
import { releaseShared } from "../../../core/buffer-pool.ts";
import { nowNs, type Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import { LIMITS } from "../../../core/limits.ts";
import { DEFAULT_SHAPE, specOf, type ColumnSpec } from "../../../format/types.ts";
import type { IngestService } from "../../ingest.ts";
import type { Sealer } from "../../seal.ts";
import { infersTypes } from "../../tables.ts";
import { DEAD_LETTERS_COLUMNS, DEAD_LETTERS_TABLE } from "./dead-letters.ts";
import { bodyOf, linesOf } from "./message-body.ts";
import type { TopicMapping } from "./options.ts";
import type { KafkaMessage } from "./record-batch.ts";

/** How messages and dead letters get into their tables, each time with a step of the partition's position. */
export type WriterPorts = {
  ingest: Pick<IngestService, "ingest">;
  catalog: Pick<Catalog, "table" | "commit">;
  /** Tells which messages of a batch cannot be rows. */
  seal: Sealer;
  clock: Clock;
  /** `ENGINE_INGEST_INFER_TYPES` */
  inferTypes: boolean;
};

export class TableWriter {
  readonly #ports: WriterPorts;
  readonly #mapping: TopicMapping;

  constructor(ports: WriterPorts, mapping: TopicMapping) {
    this.#ports = ports;
    this.#mapping = mapping;
  }

  /** Commits messages as rows. Rejects with `bad_request_body` when one of them cannot be a row. */
  async rows(messages: readonly KafkaMessage[], source: SourceStep): Promise<number> {
    const { database, table } = this.#mapping;
    const { bytes, arrivals } = bodyOf(messages, nowNs(this.#ports.clock));
    const ack = await this.#ingest(bytes, { database, table, source, arrivals });
    return ack.rows;
  }

  /** Why messages cannot be rows, by offset: each is read by itself, under the table's columns as they are now. */
  async problems(messages: readonly KafkaMessage[]): Promise<Map<number, string>> {
    const { catalog, seal, clock, inferTypes } = this.#ports;
    const table = await catalog.table(this.#mapping.database, this.#mapping.table);
    const arrivedAtNs = nowNs(clock);
    const infers = infersTypes({}, table, inferTypes);
    const { extent, outcomes } = await seal({
      columns: (table?.columns ?? DEFAULT_SHAPE).map(specOf),
      bodies: messages.map((message) => ({ bytes: linesOf(message), evolve: true, inferTypes: infers, arrivedAtNs })),
      format: "tlm",
    });
    if (extent !== undefined) releaseShared(extent.bytes);
    const problems = new Map<number, string>();
    for (const [i, { offset }] of messages.entries()) {
      const outcome = outcomes[i];
      // One that only its neighbours make too much is no problem of its own.
      const isFailed = outcome?.ok === false && outcome.error.code !== "too_many_requests";
      if (isFailed) problems.set(offset, outcome.error.message);
    }
    return problems;
  }

  /** Commits dead letters, all in one request. */
  async letters(lines: readonly string[], source: SourceStep): Promise<void> {
    const { database } = this.#mapping;
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    await this.#ingest(bytes, { database, table: DEAD_LETTERS_TABLE, source, columns: DEAD_LETTERS_COLUMNS });
  }

  /** Moves the position alone. False where there is no table yet to commit to. */
  async nothing(source: SourceStep): Promise<boolean> {
    const { catalog } = this.#ports;
    const table = await catalog.table(this.#mapping.database, this.#mapping.table);
    if (table === undefined) return false;
    const { id: tableId, schemaVersion } = table;
    const flush = { tableId, schemaVersion, newColumns: [], extents: [], ledger: [], sources: [source] };
    const [outcome] = await catalog.commit([flush]);
    if (outcome?.kind === "committed") return true;
    if (outcome?.kind !== "position_conflict") return false;
    const position = outcome.positions.find(({ name }) => name === source.name)?.position;
    throw new PositionMoved({ name: source.name, position });
  }

  async #ingest(
    bytes: Buffer,
    to: {
      database: string;
      table: string;
      source: SourceStep;
      arrivals?: BigInt64Array<ArrayBuffer>;
      columns?: readonly ColumnSpec[];
    },
  ) {
    let isTaken = false;
    try {
      return await this.#ports.ingest.ingest({
        caller: ANONYMOUS,
        autoCreate: true,
        evolve: true,
        expectedBytes: bytes.length,
        readBody: () => {
          isTaken = true;
          return Promise.resolve(bytes);
        },
        ...to,
      });
    } finally {
      // From then on the receiver gives it back.
      if (!isTaken) releaseShared(bytes);
    }
  }
}

/** Whether a request was refused for what its body holds, and not for want of something else. */
export function isRefused(error: unknown): error is EngineError {
  return error instanceof EngineError && (error.code === "bad_request_body" || error.code === "body_too_large");
}

/** What a batch may have, so that its body fits a request. */
export const MAX_BODY_BYTES = LIMITS.ingestBodyBytes / 8;

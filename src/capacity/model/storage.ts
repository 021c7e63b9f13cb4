import type { CostModel } from "../costs/cost-model.ts";
import { MIB, SECONDS_PER_DAY, SECONDS_PER_MONTH } from "../units.ts";
import type { Workload } from "../workload/workload.ts";
import { amountOf, type Demand } from "./demand.ts";
import { storedBytes } from "./needs.ts";

export type Storage = {
  /** NDJSON that came in and is retained. */
  rawBytes: number;
  /** The same as extents, once retention takes out as much as comes in. */
  storedBytes: number;
  /** Extents that merges have replaced, which stay readable for a day. */
  replacedBytes: number;
  /** Written to the store or disk in a month, merges included. */
  writtenBytesPerMonth: number;
  /** Of the catalog: extents that are there and keys of a day; null where neither was measured. */
  catalogBytes: number | null;
};

/** `ENGINE_PHYSICAL_GC_GRACE_SECS` as it comes, and the life of an idempotency key. */
const GRACE_SECONDS = SECONDS_PER_DAY;
/** What compaction makes of a table's day has files of up to this size. */
const MERGED_BYTES = 160 * MIB;

export function storageOf(workload: Workload, model: CostModel, mean: Demand): Storage {
  const costs = model.ingest(workload.deployment.mode);
  let [raw, replaced, written, extents] = [0, 0, 0, mean.commitsPerSecond * GRACE_SECONDS];
  for (const stream of workload.ingest) {
    const { rows, bytes_per_row, retention, shape, tables } = stream;
    const perSecond = rows * bytes_per_row;
    const fresh = costs.storedBytes(amountOf(stream, { at: "mean", factor: 1 }, costs, 1)) / perSecond;
    const merge = model.compaction(shape);
    const writtenPerRaw = fresh + merge.writtenPerRawByte;
    raw += perSecond * retention;
    replaced += perSecond * GRACE_SECONDS * (writtenPerRaw - merge.storedPerRawByte);
    written += perSecond * writtenPerRaw * SECONDS_PER_MONTH;
    const days = Math.max(1, retention / SECONDS_PER_DAY);
    extents += Math.max(tables * days, (perSecond * retention * merge.storedPerRawByte) / MERGED_BYTES);
  }
  const keys = mean.requestsPerSecond * GRACE_SECONDS;
  const { catalog } = model.costs;
  return {
    rawBytes: raw,
    storedBytes: storedBytes(workload, model),
    replacedBytes: replaced,
    writtenBytesPerMonth: written,
    catalogBytes: catalog === null ? null : extents * catalog.bytesPerExtent + keys * catalog.bytesPerKey,
  };
}

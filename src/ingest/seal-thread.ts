import "../core/reports.ts";
import "../core/warnings.ts";
import { move, transferableSymbol, valueSymbol } from "piscina";
import { EngineError, toErrorRecord } from "../core/errors.ts";
import { scannerOf } from "../format/body-scanners.ts";
import { checksumOf } from "../format/checksum.ts";
import { filtersOf } from "../format/columns/column-filters.ts";
import { ColumnSet } from "../format/columns/column-set.ts";
import { Misfits } from "../format/ndjson/misfits.ts";
import { encodeTlm, storedColumns } from "../format/tlm.ts";
import type { BodyOutcome, SealBody, SealedExtent, SealResult, SealTask } from "./seal.ts";

/** Seals one flush: the task of the threads of `seal-pool.ts`. The result's bytes are transferred or shared, not copied. */
export async function seal(task: SealTask): Promise<SealResult> {
  const set = new ColumnSet(task.columns);
  const outcomes = task.bodies.map((body) => scan(body, set));
  const extent = set.rows === 0 ? undefined : await encode(set, task);
  const { newColumns, wideLongs } = set;
  set.release();
  const wide = wideLongs.length === 0 ? {} : { wideLongs };
  const result = { newColumns, outcomes, ...wide, ...(extent === undefined ? {} : { extent }) };
  return transferring(result, extent?.bytes.buffer);
}

function scan(body: SealBody, set: ColumnSet): BodyOutcome {
  // What bodies before it have added would hide that this one has it too.
  set.metUnknownField = set.newColumns.length > 0;
  const misfits = new Misfits();
  try {
    const { rows, lines } = scannerOf(body.encoding).scan({ ...body, misfits }, set);
    const unfit = misfits.all();
    return {
      ok: true,
      rows,
      lines,
      ...(set.metUnknownField && { unknownFields: true }),
      ...(unfit !== undefined && { misfits: unfit }),
      ...(misfits.fractions.size > 0 && { fractions: [...misfits.fractions] }),
    };
  } catch (error) {
    if (error instanceof EngineError) return { ok: false, error: toErrorRecord(error) };
    throw error;
  }
}

/** Columns without any value are in neither the file nor the statistics. */
async function encode(set: ColumnSet, { format, output }: SealTask): Promise<SealedExtent> {
  const range = set.time.range();
  if (range === undefined) throw new Error("an extent with rows has a time range");
  const columns = storedColumns(set);
  const stats = columns.map((column) => column.stats(set.rows));
  const tlm = encodeTlm(set, format === "tlm" ? output : undefined);
  const filters = filtersOf(columns, stats, tlm.byteLength);
  const bytes = format === "tlm" ? tlm : await toParquet(tlm);
  const checksum = checksumOf(bytes);
  return { bytes, format, rows: set.rows, checksum, minAtNs: range.min, maxAtNs: range.max, stats, filters };
}

async function toParquet(tlm: Uint8Array): Promise<Uint8Array> {
  // Loaded only here: DuckDB has no part in writing tlm.
  const { tlmToParquet } = await import("../io/duckdb/parquet.ts");
  return tlmToParquet(tlm);
}

/** The result itself, marked so that on a thread of the pool its buffer changes threads instead of being copied. */
function transferring(result: SealResult, buffer: ArrayBufferLike | undefined): SealResult {
  Object.defineProperties(result, {
    [transferableSymbol]: { value: buffer instanceof ArrayBuffer ? [buffer] : [] },
    [valueSymbol]: { value: result },
  });
  move(result as unknown as Parameters<typeof move>[0]);
  return result;
}

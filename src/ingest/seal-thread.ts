import "../core/reports.ts";
import "../core/warnings.ts";
import { move, transferableSymbol, valueSymbol } from "piscina";
import { EngineError, toErrorRecord } from "../core/errors.ts";
import { foldName } from "../core/names.ts";
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
    const { rows, lines, rejected } = scannerOf(body.encoding).scan({ ...body, misfits }, set);
    const unfit = misfits.all();
    return {
      ok: true,
      rows,
      lines,
      ...(set.metUnknownField && { unknownFields: true }),
      ...(unfit !== undefined && { misfits: unfit }),
      ...(misfits.fractions.size > 0 && { fractions: [...misfits.fractions] }),
      ...(rejected !== undefined && { rejected }),
    };
  } catch (error) {
    if (error instanceof EngineError) return { ok: false, error: toErrorRecord(error) };
    throw error;
  }
}

/** Columns that no value came for are in neither the file nor the statistics. */
async function encode(set: ColumnSet, task: SealTask): Promise<SealedExtent> {
  const { format, output } = task;
  const range = set.time.range();
  if (range === undefined) throw new Error("an extent with rows has a time range");
  const columns = storedColumns(set);
  const stats = columns.map((column) => column.stats(set.rows));
  const tlm = encodeTlm(set, format === "tlm" ? output : undefined);
  const filters = filtersOf(columns, stats, tlm.byteLength);
  const written = format === "tlm" ? { bytes: tlm } : await toParquet(tlm, task);
  const checksum = checksumOf(written.bytes);
  return { ...written, format, rows: set.rows, checksum, minAtNs: range.min, maxAtNs: range.max, stats, filters };
}

type Written = Pick<SealedExtent, "bytes" | "formatVersion" | "nanosecondColumns">;

async function toParquet(tlm: Uint8Array, { columns, encodings }: SealTask): Promise<Written> {
  // Loaded only here: DuckDB has no part in writing tlm.
  const { parquetFrom } = await import("../io/duckdb/parquet.ts");
  const ids = new Map(columns.flatMap(({ name, id }) => (id === undefined ? [] : [[foldName(name), id]])));
  const { bytes, formatVersion, nanosecondColumns: finer } = await parquetFrom(tlm, { ids, encodings });
  return { bytes, formatVersion, ...(finer.length > 0 && { nanosecondColumns: finer }) };
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

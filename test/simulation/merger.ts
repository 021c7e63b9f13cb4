import { sleep, type Clock } from "../../src/core/clock.ts";
import type { Random } from "../../src/core/random.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { appendValue } from "../../src/format/columns/column.test-kit.ts";
import { ColumnSet } from "../../src/format/columns/column-set.ts";
import { foldName } from "../../src/core/names.ts";
import { encodeTlm, storedColumns } from "../../src/format/tlm.ts";
import { decodeTlm, type Value } from "../../src/format/tlm-decode.ts";
import type { ColumnSpec } from "../../src/format/types.ts";
import { DamagedInputs } from "../../src/compaction/merge.ts";
import { inCommitOrder } from "../../src/compaction/merge-on-disk.ts";
import { dayOf } from "../../src/compaction/pick.ts";
import type { Merged, MergeJob, Merger } from "../../src/compaction/publish.ts";
import type { ObjectStore } from "../../src/io/objectstore/objectstore.ts";

type Row = { atNs: bigint; values: Map<string, Value> };

/**
 * Merges where it is called: reads all rows, sorts them by time, cuts them at midnight, and writes `tlm` again. Some
 * merges take long, so that much can happen meanwhile.
 */
export const inlineMerger = ({ clock, random }: { clock: Clock; random: Random }): Merger => ({
  async prepare() {},
  async rest() {},
  async merge(store, job) {
    const rows = await readInputs(store, job);
    if (random.next() < LONG_SHARE) await sleep(clock, random.next() * LONGEST_MS, job.signal);
    rows.sort((a, b) => (a.atNs < b.atNs ? -1 : Number(a.atNs > b.atNs)));
    const days = Map.groupBy(rows, ({ atNs }) => dayOf(atNs));
    const columns = job.table.columns.map(({ name, type }) => ({ name, type }));
    const outputs = [...days.values()].map((day) => encode(columns, day));
    return {
      files: outputs.map(({ file }) => file),
      put: (index, key) => store.put(key, outputs[index]?.bytes ?? new Uint8Array(), { signal: job.signal }),
      dispose: async () => {},
    };
  },
});

const LONG_SHARE = 0.4;
const LONGEST_MS = 60_000;

async function readInputs(store: ObjectStore, { inputs, signal }: MergeJob): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { id, key, checksum } of inCommitOrder(inputs)) {
    const bytes = await store.get(key, { signal });
    signal.throwIfAborted();
    if (checksumOf(bytes) !== checksum) throw new DamagedInputs([id]);
    const { rows: count, columns } = decodeTlm(bytes);
    for (let row = 0; row < count; row++) {
      const values = new Map(columns.map((column) => [foldName(column.spec.name), column.values[row] ?? null]));
      rows.push({ atNs: values.get("at") as bigint, values });
    }
  }
  return rows;
}

function encode(
  columns: readonly ColumnSpec[],
  rows: readonly Row[],
): { file: Merged["files"][number]; bytes: Uint8Array } {
  const set = new ColumnSet(columns);
  for (const { values } of rows) {
    for (const column of set.columns) {
      const value = values.get(foldName(column.spec.name)) ?? null;
      if (value === null) continue;
      set.ready(column);
      // Of a time before the column was widened.
      appendValue(column, column.storage === "real" && typeof value === "bigint" ? Number(value) : value);
    }
    set.endRow();
  }
  const range = set.time.range();
  if (range === undefined) throw new Error("a merge without rows");
  const stats = storedColumns(set).map((column) => column.stats(set.rows));
  const bytes = encodeTlm(set);
  set.release();
  const described = { rows: rows.length, sizeBytes: bytes.byteLength, checksum: checksumOf(bytes) };
  return { bytes, file: { ...described, minAtNs: range.min, maxAtNs: range.max, stats, filters: [] } };
}

import { byteScanner } from "../../../src/format/ndjson/byte-scanner.ts";
import { ColumnSet } from "../../../src/format/columns/column-set.ts";
import { cutBySize } from "../../support/bodies.ts";
import { MIB } from "../../support/report.ts";
import { logsOfKinds, type Dataset } from "../../support/shapes.ts";
import { defineCurve } from "../curve.ts";

const ROWS = 100_000;

export const curve = defineCurve({
  name: "kinds",
  question: "What does a row cost to scan when rows of several kinds, each with its own keys, come in turn?",
  x: { unit: "kinds", sizes: [1, 2, 5, 10, 20, 50], few: [1, 3] },
  series: {
    scan: {
      unit: "ns/byte",
      doc: "bytes to columns, on one thread",
      promise: "flat",
      because:
        "each kind brings columns of its own, and a row takes a bit and a place in every column of its table, NULL or not; " +
        "tables of one kind of rows each do not have this cost",
    },
  },
  open: async ({ brief }) => {
    const at = async (size: number) => {
      const data = logsOfKinds(brief ? ROWS / 100 : ROWS, size);
      scan(data);
      return { scan: Array.from({ length: brief ? 3 : 11 }, () => (scan(data) / data.ndjson.length) * 1e6) };
    };
    return { at };
  },
});

/** Milliseconds. */
function scan({ ndjson, columns, rows }: Dataset): number {
  const startedMs = performance.now();
  const set = new ColumnSet(columns);
  for (const bytes of cutBySize(ndjson, MIB)) byteScanner.scan({ bytes, evolve: true, arrivedAtNs: 0n }, set);
  const ms = performance.now() - startedMs;
  if (set.rows !== rows) throw new Error(`${set.rows} of ${rows} rows were scanned`);
  set.release();
  return ms;
}

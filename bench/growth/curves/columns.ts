import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { seededRandom } from "../../../src/core/random.ts";
import type { ColumnSpec } from "../../../src/format/types.ts";
import { QueryClient } from "../../query/query-client.ts";
import { withCatalog } from "../../support/catalog.ts";
import { runIngest } from "../../support/ingest-run.ts";
import { startBenchServer } from "../../support/server.ts";
import { repeated } from "../catalog-figures.ts";
import { defineCurve } from "../curve.ts";

/** Of all rows together, whatever the number of columns. */
const VALUES = 600_000;

export const curve = defineCurve({
  name: "columns",
  question: "What does a value cost to ingest, and a query of one column, when a table has many columns?",
  x: { unit: "columns", sizes: [10, 50, 200, 1_000, 2_000], few: [10, 40] },
  series: {
    ingest: {
      unit: "ns/value",
      doc: "CPU time of the server, in bodies of 1 MiB by four clients",
      promise: "flat",
      because:
        "a column costs 30 to 40 µs in every extent besides its values, for its buffers, statistics and places in file and " +
        "catalog, and bodies of one size have fewer rows the wider those are: 43 at 2,000 columns; larger bodies cost less",
    },
    query: {
      unit: "ms",
      doc: "the sum of one column, of a hundred rows",
      promise: "flat",
      because: "each query names all columns of its tables to DuckDB, which takes 27 µs for each",
    },
  },
  open: async ({ folder, seed, brief, signal }) => {
    const home = join(folder, "home");
    await mkdir(home, { recursive: true });
    const server = await startBenchServer({ home });
    const client = new QueryClient(server.url);
    const at = async (size: number) => {
      const columns = columnsOf(size);
      const rows = Math.ceil((brief ? VALUES / 100 : VALUES) / size);
      const file = join(folder, `${size}.ndjson`);
      await writeFile(file, ndjsonOf(columns, rows, seed));
      const ingest: number[] = [];
      for (let round = 0; round < (brief ? 2 : 6); round++) {
        signal.throwIfAborted();
        const name = `columns_${size}_${round}`;
        await withCatalog(home, (catalog) => catalog.createTable({ database: "default", name, columns }), "admin");
        const run = await runIngest(server, {
          file,
          cut: { sizeBytes: 1024 * 1024 },
          connections: 4,
          tables: [name],
          keyPrefix: name,
        });
        if (run.failed > 0 || run.rowsAcknowledged !== rows)
          throw new Error(`${run.rowsAcknowledged} of ${rows} rows were taken: ${run.firstFailure ?? ""}`);
        // The first one is a warm-up: code is compiled for the shape.
        if (round > 0) ingest.push((run.serverCpuSeconds / (rows * size)) * 1e9);
      }
      const hundredth = `c0 < ${Math.max(1, Math.ceil((100 / rows) * RANGE))}`;
      const sql = `SELECT sum(c1) AS s FROM columns_${size}_1 WHERE ${hundredth}`;
      await client.run(sql);
      return { ingest, query: await repeated(brief ? 2 : 21, () => client.run(sql)) };
    };
    const close = async () => {
      client.close();
      await server.stop();
    };
    return { at, close };
  },
});

const RANGE = 1_000_000;

/** A time, numbers and short texts in turn. */
function columnsOf(count: number): ColumnSpec[] {
  return [
    { name: "at", type: { kind: "timestamp" } },
    ...Array.from({ length: count - 1 }, (_, i): ColumnSpec => ({
      name: `c${i}`,
      type: { kind: i % 3 === 2 ? "string" : "long" },
    })),
  ];
}

function ndjsonOf(columns: readonly ColumnSpec[], rows: number, seed: number): string {
  const random = seededRandom(seed);
  const valueOf = ({ name, type }: ColumnSpec, row: number): [string, unknown] => {
    if (type.kind === "timestamp") return [name, new Date(Date.UTC(2026, 0, 1) + row * 7).toISOString()];
    const number = Math.floor(random.next() * RANGE);
    return [name, type.kind === "string" ? `v${number % 1_000}` : number];
  };
  return Array.from(
    { length: rows },
    (_, row) => `${JSON.stringify(Object.fromEntries(columns.map((column) => valueOf(column, row))))}\n`,
  ).join("");
}

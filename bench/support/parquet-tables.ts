import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { NewExtent } from "../../src/catalog/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { systemRandom } from "../../src/core/random.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { FORMAT_VERSION, PARQUET_WITHOUT_IDS, type ColumnSpec } from "../../src/format/types.ts";
import { loadDuckDb, quoteText, type Connection, type DuckDb } from "../../src/io/duckdb/duckdb.ts";
import { itemsToWrite, parquetOptions, type ParquetLayout } from "../../src/io/duckdb/parquet.ts";
import { withCatalog } from "./catalog.ts";
import { commit } from "./commits.ts";

/** Tables of the database `bench` whose rows are in Parquet of either version, as merges write it: the same rows in each. */
export type ParquetTable = { name: string; isOld?: boolean };

const COLUMNS: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "seen", type: { kind: "timestamp" } },
  { name: "service", type: { kind: "string" } },
  { name: "level", type: { kind: "string" } },
  { name: "took", type: { kind: "int" } },
  { name: "body", type: { kind: "string" } },
];

const START_NS = 1_767_225_600_000_000_000n;
const STEP_NS = 1_000_000n;

/** The `at` of a row, in nanoseconds. */
export function timeOf(row: number): bigint {
  return START_NS + BigInt(row) * STEP_NS;
}

/** Makes them in a home that no server uses. Each file has the rows of a time of its own. */
export async function fillParquetTables(
  home: string,
  tables: readonly ParquetTable[],
  { rows, files }: { rows: number; files: number },
): Promise<void> {
  const duckdb = await loadDuckDb();
  const database = await duckdb.open(":memory:");
  const connection = await duckdb.connect(database);
  try {
    await withCatalog(home, async (catalog) => {
      for (const { name, isOld = false } of tables) {
        const { table } = await catalog.createTable({ database: "bench", name, columns: COLUMNS });
        const layout = isOld ? undefined : { columns: table.columns, finer: new Set<string>() };
        const writer = { duckdb, connection, root: join(home, "data"), layout };
        const extents: NewExtent[] = [];
        for (let i = 0; i < files; i++) {
          const [from, to] = [Math.floor((rows * i) / files), Math.floor((rows * (i + 1)) / files)];
          if (to > from) extents.push(await writeExtent(writer, { table: name, from, to }));
        }
        await commit(catalog, table, extents);
      }
    });
  } finally {
    duckdb.disconnect_sync(connection);
    duckdb.close_sync(database);
  }
}

const newId = uuidV7Source(systemClock, systemRandom);

type Writer = { duckdb: DuckDb; connection: Connection; root: string; layout: ParquetLayout | undefined };

async function writeExtent(
  { duckdb, connection, root, layout }: Writer,
  { table, from, to }: { table: string; from: number; to: number },
): Promise<NewExtent> {
  const id = newId();
  const key = `engine/bench/${table}/2026-01-01/${id}.parquet`;
  const path = join(root, key);
  await mkdir(dirname(path), { recursive: true });
  const values = [
    `make_timestamp_ns(${START_NS} + i * ${STEP_NS}) AS "at"`,
    `make_timestamp_ns(${START_NS} + (i + hash(i) % 1000)::BIGINT * ${STEP_NS}) AS seen`,
    `'service-' || hash(i, 1) % 20 AS service`,
    `['DEBUG', 'INFO', 'INFO', 'WARN', 'ERROR'][(hash(i, 2) % 5)::BIGINT + 1] AS level`,
    `(hash(i, 3) % 1000)::INTEGER AS took`,
    `'request ' || hash(i, 4) || ' took its time' AS body`,
  ];
  const items = layout === undefined ? "*" : itemsToWrite(layout);
  const options = parquetOptions({ encodings: "v2", ...(layout && { layout }) });
  const rows = `SELECT ${values.join(", ")} FROM range(${from}, ${to}) AS t(i)`;
  await duckdb.query(connection, `COPY (SELECT ${items} FROM (${rows})) TO ${quoteText(path)} (${options})`);
  const bytes = await readFile(path);
  return {
    id,
    key,
    format: "parquet",
    formatVersion: layout === undefined ? PARQUET_WITHOUT_IDS : FORMAT_VERSION.parquet,
    rows: to - from,
    sizeBytes: bytes.byteLength,
    checksum: checksumOf(bytes),
    minAtNs: timeOf(from),
    maxAtNs: timeOf(to - 1),
    stats: COLUMNS.map(({ name }) => ({ name, nullCount: 0 })),
  };
}

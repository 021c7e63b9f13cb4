import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import type { NewExtent } from "../../src/catalog/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { systemRandom } from "../../src/core/random.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { FORMAT_VERSION, PARQUET_WITHOUT_IDS, type ColumnSpec } from "../../src/format/types.ts";
import { loadDuckDb, quoteText, type Connection, type DuckDb } from "../../src/io/duckdb/duckdb.ts";
import { itemsToWrite, parquetOptions } from "../../src/io/duckdb/parquet.ts";
import { defineBenchmark, type Measure, type Side } from "../suite/benchmark.ts";
import { withCatalog } from "../support/catalog.ts";
import { commit } from "../support/commits.ts";
import { startBenchServer } from "../support/server.ts";
import { measureOf, timesOf } from "./pass.ts";
import { QueryClient } from "./query-client.ts";

/** Of the table `T`. */
const QUERIES = [
  { name: "newest", sql: "SELECT max(at) AS t FROM T" },
  { name: "extremes", sql: "SELECT min(at) AS a, max(at) AS b, count(*) AS n FROM T" },
  { name: "extremes of seen", sql: "SELECT min(seen) AS a, max(seen) AS b FROM T" },
  { name: "newest by group", sql: "SELECT service, max(at) AS t FROM T GROUP BY service ORDER BY service" },
  { name: "newest of some", sql: "SELECT max(at) AS t FROM T WHERE took > 990" },
  { name: "first rows", sql: "SELECT * FROM T ORDER BY at LIMIT 100" },
  { name: "last rows", sql: "SELECT * FROM T ORDER BY at DESC LIMIT 100" },
  { name: "first by seen", sql: "SELECT service, at, seen FROM T ORDER BY seen, at LIMIT 100" },
  { name: "last of some", sql: "SELECT at, service, took FROM T WHERE level = 'ERROR' ORDER BY at DESC LIMIT 100" },
  {
    name: "window",
    sql: "SELECT service, count(*) AS n FROM T WHERE at >= FROM_TIME AND at < TO_TIME GROUP BY ALL ORDER BY 1",
  },
  { name: "histogram", sql: "SELECT date_trunc('minute', at) AS m, count(*) AS n FROM T GROUP BY m ORDER BY m" },
  { name: "every time", sql: "SELECT bit_xor(epoch_ns(at)) AS x FROM T" },
] as const;

export const benchmark = defineBenchmark({
  name: "query/times",
  question:
    "What do queries of times take over HTTP of files with microseconds (version 2 of our Parquet), against the same rows " +
    "in files with nanoseconds (version 1)?",
  notMeasured:
    "Files with times finer than microseconds, and tables that have rows in other formats too. All rows are in memory, in " +
    "the cache of the kernel.",
  options: z.strictObject({
    rows: z.coerce.number().int().positive().default(2_000_000),
    files: z.coerce.number().int().positive().default(4).describe("that the rows are in, each for a time of its own"),
    times: z.coerce
      .number()
      .int()
      .positive()
      .default(9)
      .describe("each query in one round, of which the median counts"),
  }),
  measures: Object.fromEntries(
    QUERIES.map(({ name, sql }): [string, Measure] => [measureOf(name), { unit: "ms", better: "less", doc: sql }]),
  ),
  rounds: 9,
  open: async ({ rows, files, times }, { folder }) => {
    const home = join(folder, "home");
    await mkdir(home, { recursive: true });
    await fill(home, { rows, files });
    const server = await startBenchServer({ home });
    const client = new QueryClient(server.url, { database: "bench" });
    const sideOf = (name: string, table: string): Side => {
      const textOf = (sql: string) =>
        sql
          .replaceAll(" T ", ` ${table} `)
          .replace(/ T$/, ` ${table}`)
          .replace("FROM_TIME", `make_timestamp_ns(${timeOf(Math.floor(rows * 0.4))})`)
          .replace("TO_TIME", `make_timestamp_ns(${timeOf(Math.floor(rows * 0.41))})`);
      return {
        name,
        answers: async () => {
          const bodies: string[] = [];
          for (const { sql } of QUERIES) bodies.push((await client.run(textOf(sql), { keep: true })).body);
          return bodies;
        },
        round: async () => await timesOf(QUERIES, times, async ({ sql }) => (await client.run(textOf(sql))).ms),
        processes: () => ({ server: server.pid }),
      };
    };
    const close = async () => {
      client.close();
      await server.stop();
    };
    return { sides: [sideOf("microseconds", "micros"), sideOf("nanoseconds", "nanos")], close };
  },
});

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

function timeOf(row: number): bigint {
  return START_NS + BigInt(row) * STEP_NS;
}

type Rows = { rows: number; files: number };

/** Makes both tables of the same rows. */
async function fill(home: string, { rows, files }: Rows): Promise<void> {
  const duckdb = await loadDuckDb();
  const database = await duckdb.open(":memory:");
  const connection = await duckdb.connect(database);
  try {
    await withCatalog(home, async (catalog) => {
      for (const name of ["micros", "nanos"]) {
        const { table } = await catalog.createTable({ database: "bench", name, columns: COLUMNS });
        const layout = name === "micros" ? { columns: table.columns, finer: new Set<string>() } : undefined;
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

type Writer = {
  duckdb: DuckDb;
  connection: Connection;
  root: string;
  layout: Parameters<typeof itemsToWrite>[0] | undefined;
};

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

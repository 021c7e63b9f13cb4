import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { defineBenchmark, type Measure, type Side } from "../suite/benchmark.ts";
import { fillParquetTables, timeOf } from "../support/parquet-tables.ts";
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
    await fillParquetTables(home, [{ name: "micros" }, { name: "nanos", isOld: true }], { rows, files });
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

import { mkdir } from "node:fs/promises";
import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { datasetOf, writeDataset } from "../support/data-file.ts";
import { runCheckedIngest } from "../support/ingest-run.ts";
import { median } from "../../src/capacity/quantile.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import { QueryClient } from "./query-client.ts";

/** By measure. */
const QUERIES = {
  nothing: "SELECT 1 AS one",
  point: "SELECT count(*) AS n FROM logs WHERE trace_id = 'none'",
  group: "SELECT service, count(*) AS n FROM logs GROUP BY service ORDER BY service",
} as const;

export const benchmark = defineBenchmark({
  name: "query/fixed",
  question: "What does a query over HTTP take that has little to do?",
  notMeasured: "Large scans, cold files, many at a time. One client asks one thing after the other.",
  options: z.strictObject({
    rows: z.coerce.number().int().positive().default(200_000).describe("in the table"),
    times: z.coerce.number().int().positive().default(60).describe("each query in one round"),
  }),
  measures: {
    nothing: { unit: "ms", better: "less", doc: `${QUERIES.nothing}: median` },
    point: { unit: "ms", better: "less", doc: "a trace that no row has: median" },
    group: { unit: "ms", better: "less", doc: "all rows by a column of few values: median" },
    cpu: { unit: "CPU ms", better: "less", doc: "of the server and its children, for one of each" },
  },
  rounds: 9,
  startsServer: true,
  open: async ({ rows, times }, { folder, entry }) => {
    const dataset = datasetOf("logs", rows);
    if (dataset === undefined) throw new Error("there are no logs");
    await mkdir(folder, { recursive: true });
    const { path, expected, checks } = await writeDataset(dataset, folder);
    const server = await startBenchServer({ entry });
    const client = new QueryClient(server.url);
    const close = async () => {
      client.close();
      await server.stop();
    };
    try {
      const job = { file: path, cut: { sizeBytes: MIB }, connections: 4, tables: ["logs"], keyPrefix: "fill" };
      await runCheckedIngest(server, job, { expected, checks }, false);
    } catch (error) {
      await close();
      throw error;
    }
    const medianOf = async (sql: string) => {
      const taken: number[] = [];
      for (let i = 0; i < times; i++) taken.push((await client.run(sql)).ms);
      return median(taken);
    };
    const answers = async () => {
      const bodies: string[] = [];
      for (const sql of Object.values(QUERIES)) bodies.push((await client.run(sql, { keep: true })).body);
      return bodies;
    };
    const round = async () => {
      const before = server.cpuSeconds();
      const taken = {
        nothing: await medianOf(QUERIES.nothing),
        point: await medianOf(QUERIES.point),
        group: await medianOf(QUERIES.group),
      };
      return { ...taken, cpu: ((server.cpuSeconds() - before) * 1_000) / times };
    };
    return { sides: [{ name: "engine", answers, round, processes: () => ({ server: server.pid }) }], close };
  },
});

import { z } from "zod";
import { seededRandom } from "../../src/core/random.ts";
import { defineBenchmark, type Measure } from "../suite/benchmark.ts";
import { cutBySize } from "../support/bodies.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import { timesOf } from "./pass.ts";
import { QueryClient } from "./query-client.ts";

/** By measure. */
const AGGREGATES = [
  { name: "sum", sql: "sum(latency)" },
  { name: "avg", sql: "avg(latency)" },
  { name: "filtered", sql: "sum(latency) FILTER (latency > 500)" },
] as const;

export const benchmark = defineBenchmark({
  name: "query/widened",
  question:
    "What do sum and avg cost over a column that was inferred as long and has become real, half of whose rows lie in " +
    "extents of integers, against the same rows in extents that are all real?",
  notMeasured: "Ingest, and what compaction makes of the extents. Both tables come about as a user's would.",
  options: z.strictObject({
    rows: z.coerce.number().int().positive().default(4_000_000).describe("half of them whole numbers"),
    format: z.enum(["tlm", "parquet"]).default("tlm").describe("of the extents"),
    times: z.coerce
      .number()
      .int()
      .positive()
      .default(5)
      .describe("each query in one round, of which the median counts"),
  }),
  measures: Object.fromEntries(
    AGGREGATES.map(({ name, sql }): [string, Measure] => [name, { unit: "ms", better: "less", doc: sql }]),
  ),
  rounds: 9,
  open: async ({ rows, format, times }, { seed }) => {
    const env = { ENGINE_WRITE_FORMAT: format, ENGINE_STAGING_DISABLED: "true" };
    const server = await startBenchServer({ env });
    const client = new QueryClient(server.url);
    const close = async () => {
      client.close();
      await server.stop();
    };
    try {
      const [whole, fractions] = halvesOf(rows, seed);
      await push(server.url, "widened", [whole, fractions]);
      await push(server.url, "plain", [fractions, whole]);
      await checkTypes(client);
    } catch (error) {
      await close();
      throw error;
    }
    const sideOf = (name: string, table: string) => {
      const textOf = (aggregate: string) => `SELECT ${aggregate} AS x, count(latency) AS n FROM ${table}`;
      return {
        name,
        answers: async () => {
          const bodies: string[] = [];
          for (const { sql } of AGGREGATES) bodies.push((await client.run(textOf(sql), { keep: true })).body);
          return bodies;
        },
        round: async () => await timesOf(AGGREGATES, times, async ({ sql }) => (await client.run(textOf(sql))).ms),
        processes: () => ({ server: server.pid }),
      };
    };
    return { sides: [sideOf("half long", "widened"), sideOf("all real", "plain")], close };
  },
});

/** Values are multiples of a quarter, so that their sum is exact in whatever order it is made. */
function halvesOf(rows: number, seed: number): [Buffer, Buffer] {
  const random = seededRandom(seed);
  const half = (valueOf: () => number) => {
    const lines: Buffer[] = [];
    let part = "";
    for (let i = 0; i < rows / 2; i++) {
      part += `{"at":"2026-01-01T00:00:00Z","latency":${valueOf()}}\n`;
      if (part.length < MIB) continue;
      lines.push(Buffer.from(part));
      part = "";
    }
    return Buffer.concat([...lines, Buffer.from(part)]);
  };
  const below = (limit: number) => Math.floor(random.next() * limit);
  return [half(() => below(1_000)), half(() => below(1_000) + 0.25 + below(3) / 4)];
}

async function push(url: string, table: string, halves: readonly Buffer[]): Promise<void> {
  const headers = { "Content-Type": "application/x-ndjson", "X-Table": table, "X-Engine-Infer-Types": "true" };
  for (const half of halves) {
    for (const body of cutBySize(half, 2 * MIB)) {
      const answer = await fetch(`${url}/v1/ingest`, { method: "POST", headers, body });
      const text = await answer.text();
      if (answer.status !== 200 || text.includes("kept_in_props")) throw new Error(`a push answered ${text}`);
    }
  }
}

async function checkTypes(client: QueryClient): Promise<void> {
  const sql = "SELECT table_name, type FROM system.columns WHERE name = 'latency' ORDER BY table_name";
  const { body } = await client.run(sql, { keep: true });
  const wanted = '{"table_name":"plain","type":"real"}\n{"table_name":"widened","type":"real"}\n';
  if (body !== wanted) throw new Error(`the columns are\n${body}`);
}

import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { quoteText } from "../../src/io/duckdb/duckdb.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { startBenchServer } from "../support/server.ts";
import { queryData, TABLES } from "./data.ts";
import { QueryClient } from "./query-client.ts";
import { seedHomeIn, type SeededHome } from "./seed.ts";
import { CUT_BYTES } from "./suite.ts";

const SQL = "SELECT * FROM events";

export const benchmark = defineBenchmark({
  name: "query/ndjson",
  question:
    "How fast does a whole table become NDJSON over HTTP, against DuckDB on one thread that writes it into a file from the " +
    "same extents?",
  notMeasured: "Other answers than NDJSON (query/flight has some), and slow clients. DuckDB pays for no HTTP.",
  options: z.strictObject({
    rows: z.coerce.number().int().positive().default(200_000).describe("of the table"),
  }),
  measures: {
    wall: { unit: "MB/s", better: "more", doc: "of NDJSON, from the request to its last byte" },
  },
  rounds: 9,
  hasPeers: true,
  open: async ({ rows }, { folder }) => {
    const data = await queryData(join(folder, "data"), rows);
    const home = await seedHomeIn(folder, data, { format: "parquet", cut: { sizeBytes: CUT_BYTES } });
    const server = await startBenchServer({ home: home.home });
    const client = new QueryClient(server.url);
    const copy = await duckdbCopy(folder, home);
    const engine: Side = {
      name: "engine",
      answers: async () => linesIn((await client.run(SQL, { keep: true })).body),
      round: async () => {
        const { ms, sizeBytes } = await client.run(SQL);
        return { wall: sizeBytes / 1_000 / ms };
      },
      processes: () => ({ server: server.pid }),
    };
    const close = async () => {
      copy.close();
      client.close();
      await server.stop();
    };
    return { sides: [engine, copy.side], close };
  },
});

function linesIn(text: string): number {
  return text.split("\n").length - 1;
}

/** DuckDB works in this process: its CPU seconds are this one's. */
async function duckdbCopy(folder: string, { files }: SeededHome): Promise<{ side: Side; close: () => void }> {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  const list = (files[TABLES.events.name] ?? []).map((path) => quoteText(path)).join(", ");
  const file = join(folder, "copy.ndjson");
  const from = `read_parquet([${list}])`;
  return {
    side: {
      name: "DuckDB COPY",
      answers: async () => {
        const reader = await connection.runAndReadAll(`SELECT count(*)::INT AS n FROM ${from}`);
        return Number(reader.getRows()[0]?.[0]);
      },
      round: async () => {
        const startedMs = systemClock.monotonicMs();
        await connection.run(`COPY (SELECT * FROM ${from}) TO ${quoteText(file)} (FORMAT json)`);
        const ms = systemClock.monotonicMs() - startedMs;
        const { size } = await stat(file);
        await rm(file);
        return { wall: size / 1_000 / ms };
      },
    },
    close: () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

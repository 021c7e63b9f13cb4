import { systemClock } from "../../src/core/clock.ts";
import { writeDataset, type DataFile } from "../support/data-file.ts";
import { prepareLoad, type Generator } from "../support/generator.ts";
import type { LoadResult } from "../support/load-plan.ts";
import { MIB, shown } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { synthetic } from "../support/shapes.ts";
import { Samples, type Times } from "./measure.ts";
import type { BenchQuery } from "./queries.ts";
import { QueryClient } from "./query-client.ts";
import type { SeededHome } from "./seed.ts";

/** A table of its own takes the ingest: the queries' own rows must stay the same. */
const TABLE = "incoming";
const INCOMING_ROWS = 30_000;
const CONNECTIONS = 4;
const WARM_UPS = 3;
/** How much longer than an idle round the ingest of a loaded one goes on, for queries that take longer under it. */
const MARGIN = 3;
const MARGIN_MS = 2_000;

export type UnderIngestOptions = { folder: string; megabytesPerSecond: number; rounds: number };

/** Times every query alone and during ingest, on one server, round by round. */
export async function measureUnderIngest(
  home: SeededHome,
  queries: readonly BenchQuery[],
  { folder, megabytesPerSecond, rounds }: UnderIngestOptions,
): Promise<Times> {
  const rows = synthetic("logs", INCOMING_ROWS);
  const file = await writeDataset(rows, folder);
  const tables = [{ database: "default", name: TABLE, columns: rows.columns }];
  const server = await startBenchServer({ home: home.home, tables });
  const client = new QueryClient(server.url);
  const under = `${megabytesPerSecond} MB/s of ingest`;
  const samples = new Samples();
  const pass = async (side: string | undefined) => {
    const startedMs = systemClock.monotonicMs();
    for (const query of queries) {
      const { ms } = await client.run(query.sql);
      if (side !== undefined) samples.add(side, query, ms);
    }
    return systemClock.monotonicMs() - startedMs;
  };
  try {
    for (let i = 0; i < WARM_UPS; i++) await pass(undefined);
    let acceptedBytes = 0;
    let seconds = 0;
    for (let round = 0; round < rounds; round++) {
      // The loaded pass first, so that the first side printed is the one that is judged.
      const load = await startLoad(server, file, {
        megabytesPerSecond,
        durationMs: (await pass(round === 0 ? undefined : "idle")) * MARGIN + MARGIN_MS,
        round,
      });
      await pass(under);
      const result = await load.stillRunning();
      acceptedBytes += result.bytesAccepted;
      seconds += result.wallSeconds;
    }
    await pass("idle");
    console.log(`${shown(acceptedBytes / 1e6 / seconds)} MB/s accepted`);
  } finally {
    client.close();
    await server.stop();
  }
  return samples.medians();
}

type Load = {
  /** The result of the load; rejects when it had ended before this was called, or something was not accepted. */
  stillRunning(): Promise<LoadResult>;
};

async function startLoad(
  server: BenchServer,
  file: DataFile,
  { megabytesPerSecond, durationMs, round }: { megabytesPerSecond: number; durationMs: number; round: number },
): Promise<Load> {
  const { hostname, port } = new URL(server.url);
  const generator: Generator = await prepareLoad({
    host: hostname,
    port: Number(port),
    path: "/v1/ingest",
    headers: { "Content-Type": "application/x-ndjson" },
    tables: [TABLE],
    keyPrefix: `incoming-${process.pid}-${round}`,
    file: file.path,
    cut: { sizeBytes: MIB },
    connections: CONNECTIONS,
    pace: { perSecond: (megabytesPerSecond * 1e6) / MIB, durationMs },
  });
  let ended = false;
  const run = generator.run().finally(() => {
    ended = true;
  });
  return {
    stillRunning: async () => {
      if (ended) throw new Error("the ingest ended before the queries did: give it more time");
      const result = await run;
      if (result.failed > 0) throw new Error(`ingest failed: ${result.firstFailure ?? ""}`);
      return result;
    },
  };
}

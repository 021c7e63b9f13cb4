import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { openLoad, type Load } from "../load/drive/drive-load.ts";
import type { Profile } from "../load/profiles/profile.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import { SHAPES } from "../support/shapes.ts";
import { passData, passOver, PASS_MEASURES, PASS_OPTIONS } from "./pass.ts";
import { QueryClient } from "./query-client.ts";
import { seedHomeIn } from "./seed.ts";

const count = z.coerce.number().int().positive();

export const benchmark = defineBenchmark({
  name: "query/half-fresh",
  question:
    "What does a query cost while half of the rows are fresh and others come in, against the same rows while nothing does?",
  notMeasured:
    "Compaction. What comes in goes to a table of its own, so that the queries' own rows stay the same; its clients are a " +
    "process beside the server, on the same cores.",
  options: z.strictObject({
    ...PASS_OPTIONS,
    extentRows: count.default(1_000_000).describe("of an extent of the older half, which is compacted"),
    ingest: z.coerce.number().positive().default(10).describe("MB/s that come in, in bodies of 1 MiB"),
  }),
  measures: {
    ...PASS_MEASURES,
    accepted: { unit: "MB/s", better: "more", doc: "of what came in during the queries" },
  },
  rounds: 5,
  open: async (options, context) => {
    const { folder, data, queries } = await passData(options, context.folder);
    const freshFrom = data.facts.rows >> 1;
    const { home } = await seedHomeIn(folder, data, {
      format: "parquet",
      cut: { rows: options.extentRows },
      freshFrom,
    });
    // A home that is kept has the table from the run before.
    const columns = SHAPES.logs.columns;
    const tables = [{ database: "default", name: TABLE, columns }];
    const server = await startBenchServer({ home, tables });
    const client = new QueryClient(server.url);
    let load: Load | undefined;
    const close = async () => {
      await load?.close();
      client.close();
      await server.stop();
    };
    try {
      const { seed, signal } = context;
      const incoming = await openLoad({
        url: server.url,
        profile: profileOf(options.ingest),
        seed,
        signal,
        processes: 1,
      });
      load = incoming;
      let idleMs = 0;
      const pass = async () => {
        const startedMs = systemClock.monotonicMs();
        const values = await passOver(queries, options, async ({ sql }) => (await client.run(sql)).ms);
        return { values, ms: systemClock.monotonicMs() - startedMs };
      };
      const idle = async () => {
        const { values, ms } = await pass();
        idleMs = ms;
        return values;
      };
      const underIngest = async () => {
        const durationMs = idleMs * MARGIN + MARGIN_MS;
        const started = Promise.withResolvers<number>();
        const running = incoming.run({ durationMs, onStart: () => started.resolve(systemClock.monotonicMs()) });
        // A load that fails before it has begun ends the round.
        const startMs = await Promise.race([started.promise, running.then(() => 0)]);
        const { values } = await pass();
        if (systemClock.monotonicMs() > startMs + durationMs) {
          throw new Error("the ingest ended before the queries did: give it more time");
        }
        const { failed, firstFailure, bytesAcknowledged, seconds } = await running;
        if (failed > 0) throw new Error(`ingest failed: ${firstFailure ?? ""}`);
        return { ...values, accepted: bytesAcknowledged / 1e6 / seconds };
      };
      // The load of the first round must know how long the queries take.
      await idle();
      const processes = () => ({ server: server.pid });
      return {
        sides: [
          { name: "during ingest", round: underIngest, processes },
          { name: "idle", round: idle, processes },
        ],
        close,
      };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

/** The load's table. */
const TABLE = "load_0";
/** How much longer than an idle pass the ingest goes on, for queries that take longer under it. */
const MARGIN = 3;
const MARGIN_MS = 2_000;

function profileOf(megabytesPerSecond: number): Profile {
  return {
    role: "all_in_one",
    protocol: "http",
    tls: false,
    clients: 4,
    rate: { perSecond: (megabytesPerSecond * 1e6) / MIB },
    arrivals: "even",
    duration: MARGIN_MS,
    data: { shape: "logs", tables: 1, rows_before: 0 },
    ingest: { share: 1, body: MIB, keys: true, compression: "none" },
    queries: [],
  };
}

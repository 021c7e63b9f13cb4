import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { SHAPES } from "../support/shapes.ts";
import { loadTables, openLoad, type Load } from "./drive/drive-load.ts";
import type { LoadRun } from "./drive/load-run.ts";
import { rowsIn, targetOf } from "./drive/target.ts";
import type { Profile } from "./profiles/profile.ts";

const positive = z.coerce.number().positive();

const options = z.strictObject({
  bytes: positive.int().default(MIB).describe("of one body"),
  factor: positive.default(4).describe("times the capacity that is offered"),
  seconds: positive.default(60).describe("for how long"),
  capacity: positive.default(10).describe("seconds in which the capacity is measured before"),
  connections: positive
    .int()
    .default(512)
    .describe("enough that refusals, not busy connections, bound what is offered"),
});
type Options = z.output<typeof options>;

export const benchmark = defineBenchmark({
  name: "load/overload",
  question:
    "When several times more is offered than the server can take, does it stay within its memory, refuse what it cannot " +
    "take, keep what it acknowledged, and still answer in bounded time what it accepted?",
  notMeasured:
    "The wait for a free connection: beyond what the server takes a client waits for its turn for as long as it likes. The " +
    "clients are a process beside the server, on the same cores.",
  options,
  measures: {
    capacity: { unit: "requests/s", better: "more", doc: "accepted from 4 clients in a closed loop, just before" },
    accepted: { unit: "requests/s", better: "more", doc: "under overload" },
    refused: { unit: "%", better: "less", doc: "of what was offered: answered with 429" },
    unsent: { unit: "%", better: "less", doc: "of what was offered: every connection was busy" },
    p50: { unit: "ms", better: "less", doc: "from an accepted request's first byte to its acknowledgement" },
    p99: { unit: "ms", better: "less", doc: "the same" },
    max: { unit: "ms", better: "less", doc: "the same" },
    loop: { unit: "ms", better: "less", doc: "delay of the server's event loop, p99; an idle one shows about 10" },
    above: { unit: "MiB", better: "less", doc: "resident memory of the server at most, beyond what it has idle" },
    growth: {
      unit: "",
      better: "less",
      doc: "the most memory in the last quarter of the time over that in the second",
    },
  },
  rounds: 3,
  open: async (given, { seed, signal }) => {
    const tables = loadTables(PROFILE).map((name) => ({ database: "default", name, columns: SHAPES.logs.columns }));
    const server = await startBenchServer({ tables, env: { ENGINE_QUERY_WORKERS: "1" } });
    try {
      const idleBytes = server.memory().residentBytes;
      const profile = { ...PROFILE, ingest: { share: 1, body: given.bytes, keys: true, compression: "none" } } as const;
      const load = await openLoad({ url: server.url, profile, seed, signal });
      const round = async () => await measured(given, { load, server, idleBytes });
      return {
        sides: [{ name: "engine", round, processes: () => ({ server: server.pid }) }],
        close: async () => {
          await load.close();
          await server.stop();
        },
      };
    } catch (error) {
      await server.stop();
      throw error;
    }
  },
});

const PROFILE: Profile = {
  role: "all_in_one",
  protocol: "http",
  tls: false,
  clients: 4,
  rate: "closed",
  arrivals: "even",
  duration: 1_000,
  data: { shape: "logs", tables: 1, rows_before: 0 },
  queries: [],
};
const SAMPLE_MS = 200;

type Setup = { load: Load; server: BenchServer; idleBytes: number };

async function measured(
  { factor, seconds, capacity, connections }: Options,
  { load, server, idleBytes }: Setup,
): Promise<Record<string, number>> {
  const closed = await checked(server, () => load.run({ durationMs: capacity * 1_000 }));
  const rate = { perSecond: closed.achievedPerSecond * factor };
  const residentBytes: number[] = [];
  server.resetPeak();
  await server.loopP99Ms(); // starts its window
  const sampling = systemClock.every(SAMPLE_MS, () => residentBytes.push(server.memory().residentBytes));
  const run = await checked(server, async () => {
    const durationMs = seconds * 1_000;
    return await load.run({ rate, clients: connections, durationMs }).finally(() => sampling.cancel());
  });
  const [early, late] = [mostOf(residentBytes, 0.25, 0.5), mostOf(residentBytes, 0.75, 1)];
  return {
    capacity: closed.achievedPerSecond,
    accepted: run.achievedPerSecond,
    refused: (run.refused / run.offered) * 100,
    unsent: (run.abandoned / run.offered) * 100,
    p50: run.serviceMs.p50,
    p99: run.serviceMs.p99,
    max: run.serviceMs.max,
    loop: await server.loopP99Ms(),
    above: (server.memory().peakBytes - idleBytes) / MIB,
    growth: late / early,
  };
}

/** Rejects unless every acknowledged row is stored, and no other. */
async function checked(server: BenchServer, drive: () => Promise<LoadRun>): Promise<LoadRun> {
  const target = targetOf(server.url, undefined);
  const before = await rowsIn(target, loadTables(PROFILE));
  const run = await drive();
  if (run.failed > 0) throw new Error(`${run.failed} requests failed: ${run.firstFailure ?? ""}`);
  if (run.accepted === 0) throw new Error("no request was accepted");
  const stored = (await rowsIn(target, loadTables(PROFILE))) - before;
  if (stored !== run.rowsAcknowledged) {
    throw new Error(`${run.rowsAcknowledged} rows were acknowledged, and ${stored} are stored`);
  }
  return run;
}

function mostOf(samples: readonly number[], from: number, to: number): number {
  return Math.max(...samples.slice(Math.floor(samples.length * from), Math.ceil(samples.length * to)));
}

import { mkdir } from "node:fs/promises";
import { z } from "zod";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { DATASET_NAMES } from "../support/data-file.ts";
import type { Cut } from "../support/load-plan.ts";
import { MIB } from "../support/report.ts";
import { PRESETS, TYPES, type LoadCase } from "./cases.ts";
import { startSide, type Side as LoadSide } from "./side.ts";

const PRESET_NAMES = Object.keys(PRESETS);

const count = z.coerce.number().int().positive();

const options = z.strictObject({
  preset: z
    .enum(PRESET_NAMES)
    .default("mib")
    .describe(`${PRESET_NAMES.join(", ")}; see bench/README.md`),
  data: z.enum(DATASET_NAMES).optional().describe(DATASET_NAMES.join(", ")),
  rows: count.optional().describe("in one round"),
  bytes: count.optional().describe("of one body"),
  rowsPerRequest: count.optional().describe("instead of bytes"),
  connections: count.optional().describe("of clients, each with one request at a time"),
  tables: count.optional().describe("that requests go to in turn"),
  extraColumns: count.optional().describe("that no row has a value for"),
  extents: count.optional().describe("that the table has before"),
  types: z.enum(TYPES).optional().describe("of the columns: who says which"),
});
type Options = z.output<typeof options>;

export const benchmark = defineBenchmark({
  name: "load/ingest",
  question:
    "How much NDJSON does durable and visible HTTP ingest take per second and per CPU-second, how long do clients wait, and " +
    "what does it cost in memory and disk?",
  notMeasured:
    "Networks, TLS, compression, merges. The clients are a process beside the server, on the same cores, and each sends a " +
    "request when it has the answer to its last.",
  options,
  measures: {
    cpu: { unit: "MB/CPU-s", better: "more", doc: "per CPU second of the server, until the last acknowledgement" },
    wall: { unit: "MB/s", better: "more", doc: "until the last acknowledgement" },
    rows: { unit: "rows/s", better: "more", doc: "acknowledged" },
    requests: { unit: "requests/s", better: "more", doc: "acknowledged" },
    p50: { unit: "ms", better: "less", doc: "from a request's first byte to its acknowledgement" },
    p99: { unit: "ms", better: "less", doc: "the same" },
    max: { unit: "ms", better: "less", doc: "the same" },
    loop: { unit: "ms", better: "less", doc: "delay of the server's event loop, p99; an idle one shows about 10" },
    peak: { unit: "MiB", better: "less", doc: "resident memory of the server without its query processes, at most" },
    above: { unit: "MiB", better: "less", doc: "of it, beyond what there was before the first request" },
    disk: { unit: "MB", better: "less", doc: "blocks that one round takes: extents, catalog and its log" },
    client: { unit: "CPU s", better: "less", doc: "of the clients" },
  },
  rounds: 5,
  open: async (given, { folder, rounds }) => {
    await mkdir(folder, { recursive: true });
    const names = Array.from({ length: rounds + 1 }, (_, round) => roundName(round));
    const loads: LoadSide[] = [];
    const close = async () => {
      for (const load of loads) await load.stop();
    };
    try {
      for (const loadCase of casesOf(given)) {
        const load = await startSide(loadCase, { folder, rounds: names });
        if (load === undefined) throw new Error(`this machine does not have the data ${loadCase.data}`);
        loads.push(load);
      }
    } catch (error) {
      await close();
      throw error;
    }
    const marks: string[] = [];
    return { sides: loads.map((load) => sideOf(load, marks)), marks: () => marks.splice(0), close };
  },
});

function roundName(round: number): string {
  return `round_${round}`;
}

/** Each round checks what it stored. */
function sideOf(load: LoadSide, marks: string[]): Side {
  let done = 0;
  const { data, server, idleBytes } = load;
  const round = async () => {
    const run = await load.run(roundName(done++));
    if (run.refused > 0)
      marks.push(`${load.case.name} answered ${run.refused} requests with 429, which were sent again`);
    const mb = data.sizeBytes / 1e6;
    return {
      cpu: mb / run.serverCpuSeconds,
      wall: mb / run.wallSeconds,
      rows: data.rows / run.wallSeconds,
      requests: run.accepted / run.wallSeconds,
      p50: run.latencyMs.p50,
      p99: run.latencyMs.p99,
      max: run.latencyMs.max,
      loop: run.loopP99Ms,
      peak: run.peakBytes / MIB,
      above: (run.peakBytes - idleBytes) / MIB,
      disk: run.diskBytes / 1e6,
      client: run.cpuSeconds,
    };
  };
  return { name: load.case.name, round, processes: () => ({ server: server.pid }) };
}

/** The preset's cases with what the options say otherwise. */
function casesOf({ preset, ...given }: Options): LoadCase[] {
  const cases = PRESETS[preset] ?? [];
  return cases.map((own) => adjusted(own, cases, given));
}

function adjusted(own: LoadCase, cases: readonly LoadCase[], given: Omit<Options, "preset">): LoadCase {
  return {
    ...own,
    data: given.data ?? own.data,
    rows: given.rows ?? own.rows,
    cut: cutOf(own.cut, given),
    connections: given.connections ?? own.connections,
    tables: varied(cases, own, "tables", given.tables),
    extraColumns: varied(cases, own, "extraColumns", given.extraColumns),
    extents: varied(cases, own, "extents", given.extents),
    types: given.types ?? own.types,
  };
}

function cutOf(cut: Cut, { bytes, rowsPerRequest }: Omit<Options, "preset">): Cut {
  if (rowsPerRequest !== undefined) return { rows: rowsPerRequest };
  return bytes === undefined ? cut : { sizeBytes: bytes };
}

/** Where the cases differ by it, the option is for the one that has the most: what it is compared with stays. */
function varied(
  cases: readonly LoadCase[],
  own: LoadCase,
  key: "tables" | "extraColumns" | "extents",
  given: number | undefined,
): number {
  const most = Math.max(...cases.map((one) => one[key]));
  return own[key] === most ? (given ?? own[key]) : own[key];
}

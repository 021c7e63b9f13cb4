import { mkdir } from "node:fs/promises";
import { z } from "zod";
import { defineBenchmark } from "../suite/benchmark.ts";
import { DATASET_NAMES, requiredDataset, writeDataset } from "../support/data-file.ts";
import { runCheckedIngest } from "../support/ingest-run.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";

export const benchmark = defineBenchmark({
  name: "load/bodies",
  question: "How much NDJSON does durable and visible HTTP ingest take, and how long do clients wait?",
  notMeasured: "Networks, TLS, compression, merges. The clients are a process beside the server, on the same cores.",
  options: z.strictObject({
    data: z.enum(DATASET_NAMES).default("logs").describe(DATASET_NAMES.join(", ")),
    rows: z.coerce.number().int().positive().default(300_000).describe("in one round"),
    bytes: z.coerce.number().int().positive().default(MIB).describe("of one body"),
    connections: z.coerce.number().int().positive().default(4).describe("of clients, each with one request at a time"),
  }),
  measures: {
    cpu: { unit: "MB/CPU-s", better: "more", doc: "per CPU second of the server, until the last acknowledgement" },
    wall: { unit: "MB/s", better: "more", doc: "until the last acknowledgement" },
    wait: { unit: "ms", better: "less", doc: "from a request's first byte to its acknowledgement, median" },
  },
  rounds: 7,
  startsServer: true,
  open: async ({ data, rows, bytes, connections }, { folder, entry }) => {
    const dataset = requiredDataset(data, rows);
    await mkdir(folder, { recursive: true });
    const { path, sizeBytes, expected, checks } = await writeDataset(dataset, folder);
    const server = await startBenchServer({ entry });
    let rounds = 0;
    const round = async () => {
      const name = `round_${rounds++}`;
      const cut = { sizeBytes: bytes };
      const job = { file: path, cut, connections, tables: [name], keyPrefix: name };
      const run = await runCheckedIngest(server, job, { expected, checks }, false);
      const mb = sizeBytes / 1e6;
      return { cpu: mb / run.serverCpuSeconds, wall: mb / run.wallSeconds, wait: run.latencyMs.p50 };
    };
    return {
      sides: [{ name: "engine", round, processes: () => ({ server: server.pid }) }],
      close: () => server.stop(),
    };
  },
});

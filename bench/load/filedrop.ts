import { copyFile, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { delay } from "../../src/core/waiting.test-kit.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { mustAgree } from "../support/answers.ts";
import { DATASET_NAMES, requiredDataset, writeDataset, type DataFile } from "../support/data-file.ts";
import { runCheckedIngest } from "../support/ingest-run.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";

export const benchmark = defineBenchmark({
  name: "load/filedrop",
  question:
    "How fast does one large file that is dropped become rows, against the same rows over HTTP, and how many small files a " +
    "second are ingested?",
  notMeasured:
    "The two looks in which a large file must be the same: it is timed from when it is read. Small files are timed from " +
    "when the last one is there, with those looks.",
  options: z.strictObject({
    data: z.enum(DATASET_NAMES).default("logs").describe(DATASET_NAMES.join(", ")),
    rows: z.coerce.number().int().positive().default(3_100_000).describe("in the large file; 1 GiB of logs"),
    files: z.coerce.number().int().positive().default(10_000).describe("small ones, of 1 KiB"),
  }),
  measures: {
    wall: { unit: "MB/s", better: "more", doc: "of the large file" },
    cpu: { unit: "MB/CPU-s", better: "more", doc: "of the large file, per CPU second of the server" },
    peak: { unit: "MiB", better: "less", doc: "resident memory of the server, with the large file" },
    files: { unit: "files/s", better: "more", doc: "small ones" },
    each: { unit: "CPU ms", better: "less", doc: "of the server, for a small file" },
  },
  rounds: 3,
  open: async ({ data, rows, files }, { folder, rounds }) => {
    const dataset = requiredDataset(data, rows);
    await mkdir(folder, { recursive: true });
    const file = await writeDataset(dataset, folder);
    const tables = Array.from({ length: rounds + 1 }, (_, round) => [`file_${round}`, `http_${round}`]).flat();
    const server = await startBenchServer({
      env: ENV,
      tables: tables.map((name) => ({ database: "default", name, columns: file.columns })),
    });
    const sides = [
      sideOf(server, "file", (round) => droppedOf(server, file, `file_${round}`)),
      sideOf(server, "HTTP", (round) => overHttpOf(server, file, `http_${round}`)),
      sideOf(server, "small files", (round) => smallOf(server, files, `round_${round}`)),
    ];
    return { sides, close: () => server.stop() };
  },
});

const HTTP = { cut: { sizeBytes: 16 * MIB }, connections: 4 } as const;
const SMALL_BYTES = 1_024;
/** To ask for metrics costs the server milliseconds. */
const LOOK_MS = 300;
const ENV = { ENGINE_FILEDROP_ENABLED: "1", ENGINE_FILEDROP_POLL_SECS: "1", ENGINE_QUERY_WORKERS: "1" };

type Figures = { seconds: number; cpuSeconds: number; peakBytes: number };

/** Each round checks what it stored, but for small files, which are counted. */
function sideOf(server: BenchServer, name: string, run: (round: number) => Promise<Record<string, number>>): Side {
  let done = 0;
  return { name, round: () => run(done++), processes: () => ({ server: server.pid }) };
}

function valuesOf({ sizeBytes }: DataFile, { seconds, cpuSeconds, peakBytes }: Figures): Record<string, number> {
  const mb = sizeBytes / 1e6;
  return { wall: mb / seconds, cpu: mb / cpuSeconds, peak: peakBytes / MIB };
}

async function overHttpOf(server: BenchServer, data: DataFile, table: string): Promise<Record<string, number>> {
  const job = { file: data.path, ...HTTP, tables: [table], keyPrefix: table };
  const run = await runCheckedIngest(server, job, data, true);
  const { wallSeconds, serverCpuSeconds, peakBytes } = run;
  return valuesOf(data, { seconds: wallSeconds, cpuSeconds: serverCpuSeconds, peakBytes });
}

async function droppedOf(server: BenchServer, data: DataFile, table: string): Promise<Record<string, number>> {
  const before = await ingestedFiles(server);
  await drop(server.home, `default/${table}/big.ndjson`, (path) => copyFile(data.path, path));
  server.resetPeak();
  const isDone = async () => (await ingestedFiles(server)) > before;
  let isSeenReading = false;
  // Room is reserved when the first piece is read.
  await until(async () => {
    isSeenReading = (await metric(server, "engine_ingest_queued_bytes")) > 0;
    return isSeenReading || (await isDone());
  });
  const startedMs = performance.now();
  const cpuBefore = server.cpuSeconds();
  await until(isDone);
  const seconds = (performance.now() - startedMs) / 1000;
  const cpuSeconds = server.cpuSeconds() - cpuBefore;
  const { peakBytes } = server.memory();
  mustAgree("file-drop", await server.answers(table, data.checks), data.expected);
  // A file so small that it was in before anybody saw it being read has no time that says anything.
  return isSeenReading ? valuesOf(data, { seconds, cpuSeconds, peakBytes }) : { peak: peakBytes / MIB };
}

/** A file appears whole. */
async function drop(home: string, name: string, write: (path: string) => Promise<void>): Promise<void> {
  const path = join(home, "data", "ingest", name);
  await mkdir(join(path, ".."), { recursive: true });
  await write(`${path}.tmp`);
  await rename(`${path}.tmp`, path);
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(LOOK_MS);
}

async function metric(server: BenchServer, name: string): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const line = text.split("\n").find((one) => one.startsWith(`${name} `));
  return Number(line?.split(" ")[1] ?? 0);
}

const ingestedFiles = (server: BenchServer) => metric(server, 'engine_filedrop_files_total{outcome="ingested"}');

async function smallOf(server: BenchServer, files: number, prefix: string): Promise<Record<string, number>> {
  const before = await ingestedFiles(server);
  const pad = "x".repeat(SMALL_BYTES - 40);
  for (let n = 0; n < files; n++) {
    const row = `{"n":${n},"body":"${pad}"}\n`;
    const name = `${prefix}_${String(n).padStart(6, "0")}.ndjson`;
    await drop(server.home, `default/small/${name}`, (path) => writeFile(path, row));
  }
  const startedMs = performance.now();
  const cpuBefore = server.cpuSeconds();
  await until(async () => (await ingestedFiles(server)) - before >= files);
  const seconds = (performance.now() - startedMs) / 1000;
  return { files: files / seconds, each: ((server.cpuSeconds() - cpuBefore) * 1000) / files };
}

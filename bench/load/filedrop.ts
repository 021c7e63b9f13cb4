import { copyFile, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { delay } from "../../src/core/waiting.test-kit.ts";
import { mustAgree } from "../support/answers.ts";
import { readArguments } from "../support/arguments.ts";
import { datasetOf, withTemporaryFolder, writeDataset, type DataFile } from "../support/data-file.ts";
import { runCheckedIngest } from "../support/ingest-run.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";

/**
 * Question: how fast does one large file that is dropped become rows, against the same rows over HTTP, and how many small
 * files a second are ingested?
 *
 *     node bench/load/filedrop.ts [--rows N] [--files N] [--rounds N] [--data NAME]
 *
 * A file is timed from the moment at which it is read: before that it must be the same in two looks. Small files are timed
 * from the moment at which the last one is there, with those looks.
 */
const OPTIONS = {
  rows: { type: "string", default: "3100000" },
  files: { type: "string", default: "10000" },
  rounds: { type: "string", default: "3" },
  data: { type: "string", default: "logs" },
} as const;

const HTTP = { cut: { sizeBytes: 16 * MIB }, connections: 4 } as const;
const SMALL_BYTES = 1_024;
/** To ask for metrics costs the server milliseconds. */
const LOOK_MS = 300;
const ENV = { ENGINE_FILEDROP_ENABLED: "1", ENGINE_FILEDROP_POLL_SECS: "1", ENGINE_QUERY_WORKERS: "1" };

type Figures = { seconds: number; cpuSeconds: number; peakBytes: number };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const dataset = datasetOf(options.text("data") ?? "logs", options.count("rows"));
  if (dataset === undefined) return;
  console.log(machine());
  await withTemporaryFolder(async (folder) => {
    const data = await writeDataset(dataset, folder);
    await compare(data, options.count("rounds"));
    await manySmall(options.count("files"));
  });
}

/** The data over HTTP and as a file, in turn; the first round warms up. */
async function compare(data: DataFile, rounds: number): Promise<void> {
  const rows = Array.from({ length: rounds + 1 }, (_, i) => i);
  const tables = rows.flatMap((i) => [`http_${i}`, `file_${i}`]);
  const server = await startBenchServer({
    env: ENV,
    tables: tables.map((name) => ({ database: "default", name, columns: data.columns })),
  });
  const sides = { http: [] as Figures[], file: [] as Figures[] };
  try {
    for (const i of rows) {
      const overHttp = await overHttpOf(server, data, `http_${i}`);
      const dropped = await droppedOf(server, data, `file_${i}`);
      if (i === 0) continue;
      sides.http.push(overHttp);
      sides.file.push(dropped);
    }
  } finally {
    await server.stop();
  }
  report(data, sides);
}

async function overHttpOf(server: BenchServer, data: DataFile, table: string): Promise<Figures> {
  const job = { file: data.path, ...HTTP, tables: [table], keyPrefix: table };
  const run = await runCheckedIngest(server, job, data, true);
  return { seconds: run.wallSeconds, cpuSeconds: run.serverCpuSeconds, peakBytes: run.peakBytes };
}

async function droppedOf(server: BenchServer, data: DataFile, table: string): Promise<Figures> {
  const before = await ingestedFiles(server);
  await drop(server.home, `default/${table}/big.ndjson`, (path) => copyFile(data.path, path));
  server.resetPeak();
  const isDone = async () => (await ingestedFiles(server)) > before;
  // Room is reserved when the first piece is read. A small file is in before anybody sees that: its time says nothing.
  await until(async () => (await metric(server, "engine_ingest_queued_bytes")) > 0 || (await isDone()));
  const startedMs = performance.now();
  const cpuBefore = server.cpuSeconds();
  await until(isDone);
  const seconds = (performance.now() - startedMs) / 1000;
  const figures = { seconds, cpuSeconds: server.cpuSeconds() - cpuBefore, peakBytes: server.memory().peakBytes };
  mustAgree("file-drop", await server.answers(table, data.checks), data.expected);
  return figures;
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

function report({ sizeBytes }: DataFile, sides: Readonly<Record<"http" | "file", readonly Figures[]>>): void {
  const wall = (of: readonly Figures[]) => median(of.map(({ seconds }) => sizeBytes / 1e6 / seconds));
  const cpu = (of: readonly Figures[]) => median(of.map(({ cpuSeconds }) => sizeBytes / 1e6 / cpuSeconds));
  const peak = (of: readonly Figures[]) => Math.max(...of.map(({ peakBytes }) => peakBytes)) / MIB;
  const rows = Object.entries(sides).map(([name, of]) => [name, shown(wall(of)), shown(cpu(of)), shown(peak(of))]);
  console.log(`\n${shown(sizeBytes / MIB)} MiB of NDJSON`);
  printTable(["", "MB/s", "MB/CPU-s", "peak MiB"], rows);
  console.log(`file / http: ${shown(wall(sides.file) / wall(sides.http))}× MB/s`);
}

async function manySmall(files: number): Promise<void> {
  const server = await startBenchServer({ env: ENV });
  try {
    const pad = "x".repeat(SMALL_BYTES - 40);
    for (let n = 0; n < files; n++) {
      const row = `{"n":${n},"body":"${pad}"}\n`;
      await drop(server.home, `default/small/${String(n).padStart(6, "0")}.ndjson`, (path) => writeFile(path, row));
    }
    const startedMs = performance.now();
    const cpuBefore = server.cpuSeconds();
    const left = async () => files - (await ingestedFiles(server));
    await until(async () => (await left()) === 0);
    const seconds = (performance.now() - startedMs) / 1000;
    const perFile = ((server.cpuSeconds() - cpuBefore) / files) * 1000;
    console.log(`\n${files} files of 1 KiB: ${shown(seconds)} s, ${shown(perFile)} CPU-ms each`);
  } finally {
    await server.stop();
  }
}

if (import.meta.main) await main(process.argv.slice(2));

import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { cutBodies, logRows } from "../support/log-rows.ts";
import { summarizeProfiles } from "../support/profile.ts";
import { median, startBenchServer, type BenchServer } from "../support/server.ts";

/**
 * Question: how many rows and megabytes of NDJSON per second, and per CPU-second of the server process, does durable
 * and visible HTTP ingest take, and where does the CPU go?
 *
 * 340-byte log rows in bodies of 1 MiB from 4 clients, keyed. Before a round counts, the server must answer the same
 * row count and sum as the data has. Not asked here: peers, small requests, other shapes.
 *
 *     node bench/load/ingest.ts [--rows 300000] [--rounds 5] [--profile]
 */
const MIB = 1024 * 1024;
const CLIENTS = 4;

const rows = argument("--rows", 300_000);
const rounds = argument("--rounds", 5);
const data = logRows(rows);
const bodies = cutBodies(data, MIB);
const bytesSum = sumOfBytes(data);

console.log(`${cpus()[0]?.model} × ${cpus().length}, Node ${process.version}`);
console.log(`${rows} rows, ${(data.length / 1e6).toFixed(1)} MB, ${bodies.length} bodies, ${CLIENTS} clients`);

if (process.argv.includes("--profile")) await profile();
else await measure();

async function measure(): Promise<void> {
  const server = await startBenchServer();
  try {
    const idleBytes = server.memory().residentBytes;
    await round(server, "warm_up");
    const results = [];
    for (let i = 0; i < rounds; i++) results.push(await round(server, `round_${i}`));
    const wall = median(results.map(({ wallSeconds }) => wallSeconds));
    const cpu = median(results.map(({ cpuSeconds }) => cpuSeconds));
    const mb = data.length / 1e6;
    console.log(
      `wall    ${wall.toFixed(2)} s   ${(rows / wall / 1000).toFixed(0)}k rows/s   ${(mb / wall).toFixed(0)} MB/s`,
    );
    console.log(
      `cpu     ${cpu.toFixed(2)} s   ${(rows / cpu / 1000).toFixed(0)}k rows/CPU-s   ${(mb / cpu).toFixed(0)} MB/CPU-s`,
    );
    const peakBytes = server.memory().peakBytes;
    console.log(`memory  idle ${(idleBytes / MIB).toFixed(0)} MiB, peak ${(peakBytes / MIB).toFixed(0)} MiB`);
    console.log(`disk    ${(median(results.map(({ written }) => written)) / 1e6).toFixed(1)} MB per round`);
  } finally {
    await server.stop();
  }
}

async function profile(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "engine-profile-"));
  const server = await startBenchServer({ nodeArgs: ["--cpu-prof", `--cpu-prof-dir=${folder}`] });
  await round(server, "warm_up");
  for (let i = 0; i < rounds; i++) await round(server, `round_${i}`);
  await server.stop();
  const { totalMs, stages, functions } = summarizeProfiles(folder, stageOf);
  const line = ([name, ms]: [string, number]) =>
    `  ${((100 * ms) / totalMs).toFixed(1).padStart(5)} %  ${(ms / 1000).toFixed(2)} s  ${name}`;
  console.log(`${(totalMs / 1000).toFixed(1)} CPU-s in JavaScript threads\nby stage`);
  for (const entry of stages) console.log(line(entry));
  console.log("top functions (self)");
  for (const entry of functions.slice(0, 12)) console.log(line(entry));
  await rm(folder, { recursive: true });
}

function stageOf(url: string): string | undefined {
  if (/\/src\/format\/(ndjson|decimal|time)/.test(url)) return "scan: parse and assemble rows";
  if (url.includes("/src/format/columns/")) return "scan: column builders";
  if (/\/src\/format\/|apache-arrow|flatbuffers/.test(url)) return "seal: encode the extent";
  if (url.includes("/src/ingest/seal")) return "seal: other (checksum, hand-over)";
  if (url.includes("/src/io/objectstore/")) return "upload";
  if (url.includes("/src/catalog/")) return "commit";
  if (/\/src\/(io\/http|api)\//.test(url)) return "receive and acknowledge";
  if (url.includes("/src/ingest/")) return "stage";
  if (url.includes("piscina")) return "thread pool";
  return undefined;
}

async function round(server: BenchServer, table: string) {
  const cpuBefore = server.cpuSeconds();
  const startedMs = performance.now();
  let next = 0;
  let written = 0;
  const client = async () => {
    for (let i = next++; i < bodies.length; i = next++) {
      const response = await fetch(`${server.url}/v1/ingest`, {
        method: "POST",
        headers: { "Content-Type": "application/x-ndjson", "X-Table": table, "X-Idempotency-Key": `${i}` },
        body: bodies[i] as Buffer<ArrayBuffer>,
      });
      const ack = (await response.json()) as { bytes_written: number };
      if (response.status !== 200) throw new Error(`ingest answered ${response.status}: ${JSON.stringify(ack)}`);
      written += ack.bytes_written;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const wallSeconds = (performance.now() - startedMs) / 1000;
  const cpuSeconds = server.cpuSeconds() - cpuBefore;
  await checkAnswers(server, table);
  return { wallSeconds, cpuSeconds, written };
}

async function checkAnswers(server: BenchServer, table: string): Promise<void> {
  const body = `SELECT count(*) AS n, sum(bytes::BIGINT) AS bytes FROM ${table}`;
  const text = await (await fetch(`${server.url}/v1/query`, { method: "POST", body })).text();
  const answer = JSON.parse(text) as { n: number; bytes: number };
  if (answer.n !== rows || Number(answer.bytes) !== bytesSum) throw new Error(`the answers differ: ${text}`);
}

function sumOfBytes(ndjson: Buffer): number {
  let sum = 0;
  for (const line of ndjson.toString().split("\n"))
    if (line !== "") sum += (JSON.parse(line) as { bytes: number }).bytes;
  return sum;
}

function argument(name: string, defaultValue: number): number {
  const index = process.argv.indexOf(name);
  return index === -1 ? defaultValue : Number(process.argv[index + 1]);
}

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { FlightDataMessages } from "../../src/query/flight/flight-data.ts";
import { readArguments, type Arguments } from "../support/arguments.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { queryData } from "./data.ts";
import { seedHome } from "./seed.ts";

/**
 * Questions: how fast does one pyarrow client get a million rows by Arrow Flight, against the Arrow answer and NDJSON over
 * HTTP, and against pyarrow's own server that has the table in memory? What does it cost the server, and what does
 * cutting the Arrow stream into messages cost alone?
 *
 *     node bench/query/flight.ts [--rows 1000000] [--rounds 5] [--keep FOLDER]
 */
const OPTIONS = {
  rows: { type: "string", default: "1000000" },
  rounds: { type: "string", default: "5" },
  keep: { type: "string" },
} as const;

const SQL = "SELECT * FROM events";
const SIDES = ["flight", "arrow", "ndjson", "pyarrow"] as const;
type SideName = (typeof SIDES)[number];

const TITLES: Readonly<Record<SideName, string>> = {
  flight: "Flight",
  arrow: "Arrow over HTTP",
  ndjson: "NDJSON over HTTP",
  pyarrow: "pyarrow's server, in memory",
};

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  const kept = options.text("keep");
  if (kept === undefined) await withTemporaryFolder((folder) => measure(folder, options));
  else await measure(kept, options);
}

async function measure(folder: string, options: Arguments): Promise<void> {
  await mkdir(folder, { recursive: true });
  const rows = options.count("rows");
  const data = await queryData(join(folder, `data-${rows}`), rows);
  const cut = { sizeBytes: 16 * 1024 * 1024 };
  const { home } = await seedHome(join(folder, `home-flight-${rows}`), data, { format: "parquet", cut });
  const port = await anyPort();
  const server = await startBenchServer({ home, env: { ENGINE_GRPC_ADDR: `127.0.0.1:${port}` } });
  const python = pythonWithPyarrow();
  const address = `grpc://127.0.0.1:${port}`;
  const other = startPython(python, ["serve", address, SQL]);
  const client = startPython(python, ["measure", server.url, address, `grpc://127.0.0.1:${await portOf(other)}`]);
  try {
    await measureSides({ server, client, rows, rounds: options.count("rounds") });
    await measureReframing(server.url);
  } finally {
    for (const { child } of [client, other]) child.kill();
    await server.stop();
  }
}

type Sample = { ms: number; rows: number; bytes: number; cpuSeconds: number };

type SidesOptions = { server: BenchServer; client: Python; rows: number; rounds: number };

async function measureSides({ server, client, rows, rounds }: SidesOptions): Promise<void> {
  const samples = new Map<SideName, Sample[]>(SIDES.map((side) => [side, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const side of SIDES) {
      const before = server.cpuSeconds();
      const sample = (await client.ask({ side, sql: SQL })) as Omit<Sample, "cpuSeconds">;
      if (sample.rows !== rows) throw new Error(`${side} gave ${sample.rows} rows, not ${rows}`);
      if (round > 0) samples.get(side)?.push({ ...sample, cpuSeconds: server.cpuSeconds() - before });
    }
  }
  printSides(samples);
}

function printSides(samples: ReadonlyMap<SideName, readonly Sample[]>): void {
  const of = (side: SideName) => samples.get(side) ?? [];
  // Of the same round.
  const ratioTo = (side: SideName) => median(of("flight").map(({ ms }, i) => (of(side)[i]?.ms ?? Number.NaN) / ms));
  console.log(`\n${SQL} for one pyarrow client`);
  printTable(
    ["", "1,000 rows/s", "MB", "server CPU-s", "Flight / this"],
    SIDES.map((side) => {
      const all = of(side);
      const perSecond = median(all.map(({ rows, ms }) => rows / ms));
      const megabytes = median(all.map(({ bytes }) => bytes / 1e6));
      const cpu = side === "pyarrow" ? Number.NaN : median(all.map(({ cpuSeconds }) => cpuSeconds));
      return [TITLES[side], shown(perSecond), shown(megabytes), shown(cpu), `${shown(ratioTo(side))}×`];
    }),
  );
}

const REFRAMINGS = 5;
const PIECE_BYTES = 256 * 1024;

/** The Arrow answer, in memory, cut into messages over and over. */
async function measureReframing(url: string): Promise<void> {
  const headers = { Accept: "application/vnd.apache.arrow.stream" };
  const answer = await fetch(`${url}/v1/query`, { method: "POST", headers, body: SQL });
  const stream = Buffer.from(await answer.arrayBuffer());
  const seconds: number[] = [];
  for (let i = 0; i <= REFRAMINGS; i++) {
    const started = process.cpuUsage();
    for await (const _ of new FlightDataMessages(piecesOf(stream)));
    const { user, system } = process.cpuUsage(started);
    if (i > 0) seconds.push((user + system) / 1e6 / (stream.byteLength / 1e8));
  }
  console.log(`\ncutting the stream into messages: ${shown(median(seconds))} CPU-s per 100 MB`);
}

async function* piecesOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

type Python = { child: ChildProcess; ask(question: object): Promise<unknown>; line(): Promise<unknown> };

function pythonWithPyarrow(): string {
  const { status, stdout, stderr } = spawnSync(path("../../.ci/install-pyarrow"), { encoding: "utf8" });
  if (status !== 0) throw new Error(`pyarrow cannot be installed: ${stderr}`);
  return stdout.trim();
}

function startPython(python: string, args: readonly string[]): Python {
  const child = spawn(python, [path("flight-client.py"), ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<unknown> => {
    const next = await lines.next();
    if (next.done === true) throw new Error("the Python process ended");
    return JSON.parse(next.value) as unknown;
  };
  return {
    child,
    line,
    ask: (question) => {
      child.stdin.write(`${JSON.stringify(question)}\n`);
      return line();
    },
  };
}

async function portOf(server: Python): Promise<number> {
  return ((await server.line()) as { port: number }).port;
}

/** One that nobody listens on at the moment. */
async function anyPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

if (import.meta.main) await main(process.argv.slice(2));

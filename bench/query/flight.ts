import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { FlightDataMessages } from "../../src/query/flight/flight-data.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { queryData } from "./data.ts";
import { seedHome } from "./seed.ts";

const SQL = "SELECT * FROM events";

/** By what `flight-client.py` calls them. */
const SIDES = {
  flight: "Flight",
  arrow: "Arrow over HTTP",
  ndjson: "NDJSON over HTTP",
  pyarrow: "pyarrow",
} as const;
type SideName = keyof typeof SIDES;

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** All sides must give all rows. */
export const benchmark = defineBenchmark({
  name: "query/flight",
  question:
    "How fast does one pyarrow client get a whole table by Arrow Flight, against the Arrow answer and NDJSON over HTTP and " +
    "pyarrow's own server that has the table in memory, and at what cost to the server?",
  notMeasured:
    "Several clients, and networks. Lines of NDJSON are counted, not parsed; pyarrow's server runs no query and reads no file.",
  options: z.strictObject({ rows: z.coerce.number().int().positive().default(1_000_000).describe("in the table") }),
  measures: {
    rows: { unit: "rows/s", better: "more", doc: "that the client has" },
    size: { unit: "MB", better: "less", doc: "that the client has" },
    cpu: { unit: "CPU s", better: "less", doc: "of the engine's server and its children" },
    cutting: { unit: "CPU s", better: "less", doc: "to cut 100 MB of an Arrow stream into messages, in process" },
  },
  rounds: 5,
  hasPeers: true,
  open: async ({ rows }, { folder }) => {
    await mkdir(folder, { recursive: true });
    const data = await queryData(join(folder, "data"), rows);
    const cut = { sizeBytes: 16 * MIB };
    const { home } = await seedHome(join(folder, "home"), data, { format: "parquet", cut });
    const port = await anyPort();
    const python = pythonWithPyarrow();
    const server = await startBenchServer({ home, env: { ENGINE_GRPC_ADDR: `127.0.0.1:${port}` } });
    const children: ChildProcess[] = [];
    const start = (...words: string[]): Python => {
      const started = startPython(python, words);
      children.push(started.child);
      return started;
    };
    const close = async () => {
      for (const child of children) child.kill();
      await server.stop();
    };
    try {
      const address = `grpc://127.0.0.1:${port}`;
      const other = start("serve", address, SQL);
      const client = start("measure", server.url, address, `grpc://127.0.0.1:${await portOf(other)}`);
      const bench: Bench = { server, other, client, rows };
      const sides = (Object.keys(SIDES) as SideName[]).map((side) => sideOf(side, bench));
      return { sides: [...sides, await cuttingSide(server.url)], close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

type Bench = { server: BenchServer; other: Python; client: Python; rows: number };

type Sample = { ms: number; rows: number; bytes: number };

function sideOf(side: SideName, { server, other, client, rows }: Bench): Side {
  const name = SIDES[side];
  const fetchAll = async (): Promise<Sample> => {
    const sample = (await client.ask({ side, sql: SQL })) as Sample;
    if (sample.rows !== rows) throw new Error(`${name} gave ${sample.rows} rows, not ${rows}`);
    return sample;
  };
  const round = async () => {
    const before = server.cpuSeconds();
    const { ms, bytes } = await fetchAll();
    const cpu = server.cpuSeconds() - before;
    const own = { rows: (rows * 1_000) / ms, size: bytes / 1e6 };
    return side === "pyarrow" ? own : { ...own, cpu };
  };
  const pid = side === "pyarrow" ? other.child.pid : server.pid;
  const processes = () => ({ ...(pid !== undefined && { server: pid }), ...clientOf(client) });
  return { name, answers: async () => (await fetchAll()).rows, round, processes };
}

function clientOf({ child: { pid } }: Python): Record<string, number> {
  return pid === undefined ? {} : { client: pid };
}

const PIECE_BYTES = 256 * 1024;

/** The Arrow answer, in memory, cut into messages. */
async function cuttingSide(url: string): Promise<Side> {
  const headers = { Accept: "application/vnd.apache.arrow.stream" };
  const answer = await fetch(`${url}/v1/query`, { method: "POST", headers, body: SQL });
  const stream = Buffer.from(await answer.arrayBuffer());
  const round = async () => {
    const started = process.cpuUsage();
    for await (const _ of new FlightDataMessages(piecesOf(stream)));
    const { user, system } = process.cpuUsage(started);
    return { cutting: (user + system) / 1e6 / (stream.byteLength / 1e8) };
  };
  return { name: "cutting alone", round };
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

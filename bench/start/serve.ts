import { existsSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer, type ServerOptions } from "../support/server.ts";
import { bytesAlone, memoryOfTree, type ProcessMemory } from "./memory.ts";

const START = entryAt("../../bin/engine.js");
const BUNDLE = entryAt("../../dist/engine.js");
const SOURCES = entryAt("../../roles/main.ts");

function entryAt(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

export const benchmark = defineBenchmark({
  name: "start/serve",
  question:
    "How long does `engine serve` take on an empty home until it listens and has answered a first query, in time and in " +
    "CPU, and what does it hold when nobody asks it anything?",
  notMeasured:
    "Files that are not in the page cache: a first round reads those of each side. The first start of all, which " +
    "compiles: it takes as long as that of the bundle alone. The database that queries are asked of exists before the " +
    "start that they are asked after.",
  options: z.strictObject({
    idleMs: z.coerce.number().int().positive().default(10_000).describe("from listening until memory is read"),
    singleFile: z.string().optional().describe("a single file of the program, as one more side"),
  }),
  measures: {
    listening: { unit: "ms", better: "less", doc: "until it listens" },
    cpu: { unit: "CPU ms", better: "less", doc: "until it listens" },
    health: { unit: "ms", better: "less", doc: "the first request, to /health" },
    firstQuery: { unit: "ms", better: "less", doc: "the first SELECT 1" },
    nextQuery: { unit: "ms", better: "less", doc: "the second SELECT 1" },
    idle: { unit: "MiB", better: "less", doc: "of all processes; what is shared is divided (PSS)" },
    idleServer: { unit: "MiB", better: "less", doc: "of the server's process alone (PSS)" },
    idleQuery: { unit: "MiB", better: "less", doc: "of its idle query processes (PSS)" },
    idleAlone: { unit: "MiB", better: "less", doc: "of all processes, where nothing else runs Node" },
    unpacking: { unit: "ms", better: "less", doc: "until a single file listens that unpacks itself first" },
  },
  rounds: 7,
  open: async ({ idleMs, singleFile }, { folder }) => {
    if (!existsSync(BUNDLE)) throw new Error(`there is no bundle ${BUNDLE}: make it by npm run build`);
    await mkdir(folder, { recursive: true });
    // Users start it this way; what the first start compiles, a warm-up round, is kept for the others.
    const kept = { entry: START, env: { XDG_CACHE_HOME: join(folder, "cache") } };
    const sides = [
      sideOf("engine", kept, idleMs),
      sideOf("bundle", { entry: BUNDLE }, idleMs),
      sideOf("sources", { entry: SOURCES }, idleMs),
    ];
    if (singleFile === undefined) return { sides };
    sides.push(singleFileSide(resolve(singleFile), idleMs, folder));
    return { sides };
  },
});

/** How a side is started. */
type Started = Pick<ServerOptions, "entry" | "program" | "env">;

function sideOf(name: string, started: Started, idleMs: number): Side {
  return { name, round: async () => ({ ...(await startUnused(started, idleMs)), ...(await startUsed(started)) }) };
}

/** Unpacked by its first start, in each round anew. */
function singleFileSide(file: string, idleMs: number, folder: string): Side {
  const name = "single file";
  const round = async () => {
    const started = { program: [file], env: { ENGINE_RUNTIME_DIR: await mkdtemp(join(folder, "runtime-")) } };
    const { listening: unpacking } = await startUnused(started, 0);
    return { unpacking, ...(await sideOf(name, started, idleMs).round()) };
  };
  return { name, round };
}

/** On an empty home, where the first user is made; asked nothing. */
async function startUnused(started: Started, idleMs: number) {
  const startedMs = systemClock.monotonicMs();
  const server = await startBenchServer(started);
  try {
    const listening = systemClock.monotonicMs() - startedMs;
    const cpu = server.cpuSeconds() * 1_000;
    if (idleMs > 0) await sleep(systemClock, idleMs);
    const processes = memoryOfTree(server.pid);
    const named = (name: string) => processes.filter((one) => one.name === name);
    return {
      listening,
      cpu,
      idle: pssOf(processes) / MIB,
      idleServer: pssOf(named("server")) / MIB,
      idleQuery: pssOf(named("query")) / MIB,
      idleAlone: bytesAlone(processes) / MIB,
    };
  } finally {
    await server.stop();
  }
}

/** With the database that queries are asked of, which an empty home has not got. */
async function startUsed(started: Started) {
  const server = await startBenchServer({ ...started, tables: [{ database: "default", name: "t", columns: [] }] });
  try {
    const health = await timeOf(() => fetch(`${server.url}/health`));
    const firstQuery = await timeOf(() => selectOne(server.url));
    const nextQuery = await timeOf(() => selectOne(server.url));
    return { health, firstQuery, nextQuery };
  } finally {
    await server.stop();
  }
}

async function timeOf(ask: () => Promise<Response>): Promise<number> {
  const startedMs = systemClock.monotonicMs();
  const response = await ask();
  const text = await response.text();
  if (!response.ok) throw new Error(`the server answered ${response.status}: ${text}`);
  return systemClock.monotonicMs() - startedMs;
}

function selectOne(url: string): Promise<Response> {
  return fetch(`${url}/v1/query`, { method: "POST", body: "SELECT 1 AS one" });
}

function pssOf(processes: readonly ProcessMemory[]): number {
  return processes.reduce((bytes, { pssBytes }) => bytes + pssBytes, 0);
}

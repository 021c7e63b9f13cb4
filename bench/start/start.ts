import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/core/clock.ts";
import { type Arguments, readArguments } from "../support/arguments.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import { startBenchServer, type ServerOptions } from "../support/server.ts";
import { bytesAlone, memoryOfTree, type ProcessMemory } from "./memory.ts";

/**
 * Question: how long does `engine serve` take on an empty home until it listens and has answered a first query, in time
 * and in CPU, and what does it hold when nobody asks it anything?
 *
 *     npm run build && node bench/start/start.ts [--rounds 7] [--idle-ms 10000] [--single-file FILE]
 *
 * The sides are the bundle, the sources and a single file where one is given, in turn. Its first start, which unpacks it,
 * is printed apart. Memory is read `--idle-ms` after listening, of a server that is
 * asked nothing.
 */
const OPTIONS = {
  rounds: { type: "string", default: "7" },
  "idle-ms": { type: "string", default: "10000" },
  "single-file": { type: "string" },
} as const;

const SIDES = { bundle: entryAt("../../dist/engine.js"), sources: entryAt("../../roles/main.ts") } as const;

function entryAt(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/** How a side is started. */
type Started = Pick<ServerOptions, "entry" | "program" | "env">;

type Round = {
  listeningMs: number;
  cpuSeconds: number;
  healthMs: number;
  firstQueryMs: number;
  nextQueryMs: number;
  processes: ProcessMemory[];
};

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  if (!existsSync(SIDES.bundle)) throw new Error("there is no bundle: npm run build");
  const singleFile = options.text("single-file");
  const runtimeDir = await mkdtemp(join(tmpdir(), "engine-bench-runtime-"));
  try {
    const sides = new Map<string, Started>(Object.entries(SIDES).map(([side, entry]) => [side, { entry }]));
    if (singleFile !== undefined) {
      const single = { program: [resolve(singleFile)], env: { ENGINE_RUNTIME_DIR: runtimeDir } };
      const { listeningMs } = await startUnused(single, 0);
      console.log(`first start of the single file: listening after ${shown(listeningMs)} ms`);
      sides.set("single file", single);
    }
    await compare([...sides], options);
  } finally {
    await rm(runtimeDir, { recursive: true, force: true });
  }
}

async function compare(sides: readonly [string, Started][], options: Arguments): Promise<void> {
  const rounds = new Map(sides.map(([side]): [string, Round[]] => [side, []]));
  for (let round = 0; round <= options.count("rounds"); round++) {
    for (const [side, started] of sides) {
      // The first round reads the files of each side into the page cache.
      const measured = await measure(started, round === 0 ? 0 : options.count("idle-ms"));
      if (round > 0) rounds.get(side)?.push(measured);
    }
  }
  printStarts(rounds);
  for (const [side, measured] of rounds) printMemory(side, measured);
}

async function measure(started: Started, idleMs: number): Promise<Round> {
  return { ...(await startUnused(started, idleMs)), ...(await startUsed(started)) };
}

/** On an empty home, where the first user is made; asked nothing. */
async function startUnused(
  started: Started,
  idleMs: number,
): Promise<Pick<Round, "listeningMs" | "cpuSeconds" | "processes">> {
  const startedMs = systemClock.monotonicMs();
  const server = await startBenchServer(started);
  try {
    const listeningMs = systemClock.monotonicMs() - startedMs;
    const cpuSeconds = server.cpuSeconds();
    if (idleMs > 0) await new Promise<void>((resolve) => systemClock.after(idleMs, resolve));
    return { listeningMs, cpuSeconds, processes: memoryOfTree(server.pid) };
  } finally {
    await server.stop();
  }
}

/** With the database that queries are asked of, which an empty home has not got. */
async function startUsed(started: Started): Promise<Pick<Round, "healthMs" | "firstQueryMs" | "nextQueryMs">> {
  const server = await startBenchServer({ ...started, tables: [{ database: "default", name: "t", columns: [] }] });
  try {
    const healthMs = await timeOf(() => fetch(`${server.url}/health`));
    const firstQueryMs = await timeOf(() => selectOne(server.url));
    const nextQueryMs = await timeOf(() => selectOne(server.url));
    return { healthMs, firstQueryMs, nextQueryMs };
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

function printStarts(rounds: ReadonlyMap<string, readonly Round[]>): void {
  const row = ([side, all]: [string, readonly Round[]]): string[] => {
    const of = (value: (round: Round) => number): string => shown(median(all.map(value)));
    return [
      side,
      of(({ listeningMs }) => listeningMs),
      of(({ cpuSeconds }) => cpuSeconds * 1000),
      of(({ healthMs }) => healthMs),
      of(({ firstQueryMs }) => firstQueryMs),
      of(({ nextQueryMs }) => nextQueryMs),
    ];
  };
  printTable(["start, ms", "listening", "CPU until then", "/health", "first SELECT 1", "second"], [...rounds].map(row));
}

/** Of the round with the median sum; processes of one name are shown together. */
function printMemory(side: string, rounds: readonly Round[]): void {
  const sorted = rounds.map(({ processes }) => processes).toSorted((a, b) => pssOf(a) - pssOf(b));
  const processes = sorted[sorted.length >> 1] ?? [];
  const names = [...new Set(processes.map(({ name }) => name))];
  const rows = names.map((name) => {
    const same = processes.filter((one) => one.name === name);
    const anonymous = total(same, ({ anonymousBytes }) => anonymousBytes);
    return [name, String(same.length), shown(pssOf(same) / MIB), shown(anonymous / MIB)];
  });
  printTable([`\n${side}, idle MiB`, "processes", "PSS", "anonymous"], rows);
  console.log(`all: ${shown(pssOf(processes) / MIB)} MiB PSS, ${shown(bytesAlone(processes) / MIB)} MiB if alone`);
}

function pssOf(processes: readonly ProcessMemory[]): number {
  return total(processes, ({ pssBytes }) => pssBytes);
}

function total(processes: readonly ProcessMemory[], bytesOf: (process: ProcessMemory) => number): number {
  return processes.reduce((bytes, process) => bytes + bytesOf(process), 0);
}

if (import.meta.main) await main(process.argv.slice(2));

import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CreateTable } from "../../src/catalog/catalog.ts";
import { releasedProgram } from "../../src/core/isolate.ts";
import { removeUnmounted } from "../../src/sandbox/runtime/removal.test-kit.ts";
import { duckdbAnswersSql, type Answers } from "./answers.ts";
import { withCatalog } from "./catalog.ts";
import { cpuSecondsOf, diskBytesOf, memoryOf, resetPeak } from "./process-stats.ts";
import type { Checks } from "./shapes.ts";

/** A server to measure: a process of its own, as a user starts it. */
export type BenchServer = {
  url: string;
  pid: number;
  home: string;
  /** User and system CPU seconds so far, of all threads and of the children. */
  cpuSeconds(): number;
  /** Resident bytes of the server's process, without the query processes: now, and the most since `resetPeak`. */
  memory(): { residentBytes: number; peakBytes: number };
  resetPeak(): void;
  /** Bytes on the disk: extents, catalog and its log. */
  diskBytes(): Promise<number>;
  /** The event loop's delay (ms, 99th percentile) since it was asked last. An idle loop shows the 10 ms it samples at. */
  loopP99Ms(): Promise<number>;
  answers(table: string, checks: Checks): Promise<Answers>;
  /** Ends the server and removes its home, unless the home was given. */
  stop(): Promise<void>;
};

export type ServerOptions = {
  /** An existing folder; else a fresh one is made, and removed in the end. */
  home?: string;
  /** What to start; the release where there is one, else the sources, unless given. */
  entry?: string | undefined;
  /** The words of a program that starts without this Node; `entry` and `nodeArgs` are not read then. */
  program?: readonly string[];
  nodeArgs?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** Tables that exist before the start. */
  tables?: readonly CreateTable[];
};

const SOURCES = fileURLToPath(new URL("../../roles/main.ts", import.meta.url));

/** Tests have built the release before: from the sources a server takes three times the CPU to start. */
function entryHere(): string {
  return releasedProgram("engine") ?? SOURCES;
}

export async function startBenchServer(options: ServerOptions = {}): Promise<BenchServer> {
  const home = options.home ?? (await mkdtemp(join(tmpdir(), "engine-bench-")));
  await createTables(home, options.tables ?? []);
  const node = [process.execPath, ...(options.nodeArgs ?? []), options.entry ?? entryHere()];
  const [command, ...args] = [...(options.program ?? node), "serve", "--addr", "127.0.0.1:0"];
  const child = spawn(command, args, {
    // What compaction costs is a question of its own, and extents must stay as they were made.
    env: {
      ...environment(),
      ENGINE_HOME: home,
      ENGINE_COMPACTION_POLL_SECS: "0",
      ENGINE_GRPC_ADDR: "off",
      ...options.env,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await listening(child);
  const pid = Number(child.pid);
  return {
    url,
    pid,
    home,
    cpuSeconds: () => cpuSecondsOf(pid),
    memory: () => memoryOf(pid),
    resetPeak: () => resetPeak(pid),
    diskBytes: () => diskBytesOf(home),
    loopP99Ms: () => loopP99Ms(url),
    answers: (table, checks) => answersOf(url, table, checks),
    stop: async () => {
      child.kill("SIGTERM");
      await gone;
      if (options.home === undefined) await removeUnmounted(home);
    },
  };
}

/** This process's environment without settings of the engine that the shell may carry. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ENGINE_")));
}

async function createTables(home: string, tables: readonly CreateTable[]): Promise<void> {
  if (tables.length === 0) return;
  await withCatalog(home, async (catalog) => {
    for (const table of tables) await catalog.createTable(table);
  });
}

function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let log = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      // The pipe is read on to its end, or the server would wait for us; but only its beginning is of interest.
      if (log.length < MAX_LOG_CHARS) log += text;
      const found = /"url":"(https?:[^"]+)"/.exec(log)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", () => reject(new Error(`the server ended before it listened:\n${log}`)));
  });
}

const MAX_LOG_CHARS = 64 * 1024;

async function loopP99Ms(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const seconds = /^engine_nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(text)?.[1];
  return Number(seconds ?? Number.NaN) * 1000;
}

/** What the table holds, asked of the server at that address. */
export async function answersOf(url: string, table: string, checks: Checks): Promise<Answers> {
  const response = await fetch(`${url}/v1/query`, { method: "POST", body: duckdbAnswersSql(checks, table) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`the query answered ${response.status}: ${text}`);
  const { n, s, h } = JSON.parse(text) as { n: number; s: number | null; h: number | null };
  return { rows: n, sum: s ?? 0, hash: h ?? 0 };
}

import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { CostPart, IngestObservation } from "../../src/capacity/costs/costs.ts";
import { withCatalog } from "../support/catalog.ts";
import { prepareLoad } from "../support/generator.ts";
import { planOf } from "../support/ingest-run.ts";
import type { Cut, LoadPlan, LoadResult } from "../support/load-plan.ts";
import { cpuSecondsOf, mainThreadSecondsOf, memoryOf, resetPeak } from "../support/process-stats.ts";
import { MIB } from "../support/report.ts";
import { byLabel, scrape } from "../support/scrape.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import type { ShapeName } from "../support/shapes.ts";
import { rowsIn } from "./questions.ts";
import { writeRows, type RowsFile } from "./rows-file.ts";
import type { StepContext } from "./step.ts";

/** Where a load is sent, and where what it costs is read. */
export type IngestTarget = Pick<IngestObservation, "deployment" | "viaEdge"> & {
  /** Takes rows. */
  url: string;
  /** Answers queries. */
  queryUrl: string;
  /** Addresses of all processes of the engine, whose metrics count together. */
  urls: readonly string[];
  pids: ReadonlyMap<CostPart, number>;
  /** Of the PostgreSQL log, so far. */
  walBytes: () => Promise<number | null>;
  createTable(name: string, data: RowsFile): Promise<void>;
  /** Resolves when so many requests to the table are visible. */
  untilVisible(table: string, requests: number): Promise<void>;
};

/** One load: who sends what. */
export type IngestLoad = {
  /** Letters, digits and `_`: its tables are named after it. */
  name: string;
  data: RowsFile;
  cut: Cut;
  clients: number;
  tables: number;
  /** Requests a second that fall due; unless given, each client sends its next request when it has its answer. */
  perSecond?: number;
  durationMs: number;
  warmUpMs: number;
};

/** Runs a load, after the same as a warm-up, and checks that its tables then hold what was acknowledged. */
export async function observeIngest(target: IngestTarget, load: IngestLoad): Promise<IngestObservation> {
  const tables = Array.from({ length: load.tables }, (_, i) => `${load.name}_t${i}`);
  for (const table of tables) await target.createTable(table, load.data);
  const warmed = await warmUp(target, load, tables);
  const pace = load.perSecond === undefined ? {} : { pace: paceOf(load) };
  const generator = await prepareLoad({
    ...planFor(target, load, tables, "load"),
    repeatForMs: load.durationMs,
    ...pace,
  });
  const before = await spendingOf(target);
  for (const part of engineParts(target)) resetPeak(pidOf(target, part));
  const cpuBefore = cpuOf(target);
  const startedMs = performance.now();
  const result = await generator.run();
  if (result.failed > 0) throw new Error(`requests failed: ${result.firstFailure ?? ""}`);
  const [first = ""] = tables;
  if (tables.length === 1) await target.untilVisible(first, warmed.accepted + result.accepted);
  const seconds = (performance.now() - startedMs) / 1_000;
  const cpuAfter = cpuOf(target);
  const after = await spendingOf(target);
  const peaks = engineParts(target).map((part) => [part, memoryOf(pidOf(target, part)).peakBytes] as const);
  await mustHold(target, tables, warmed.rowsAcknowledged + result.rowsAcknowledged);
  const { deployment, viaEdge } = target;
  return {
    deployment,
    viaEdge,
    shape: load.data.shape,
    rows: result.rowsAcknowledged,
    rawBytes: result.bytesAccepted,
    requests: result.accepted,
    bodyBytes: result.bytesAccepted / result.accepted,
    clients: load.clients,
    tables: load.tables,
    offeredPerSecond: load.perSecond ?? null,
    seconds,
    commits: after.commits - before.commits,
    cpuSeconds: lessBefore(cpuAfter.all, cpuBefore.all),
    mainThreadSeconds: lessBefore(cpuAfter.mainThread, cpuBefore.mainThread),
    walBytes: after.walBytes === null || before.walBytes === null ? null : after.walBytes - before.walBytes,
    storeRequests: lessBefore(after.storeRequests, before.storeRequests),
    storedBytes: after.storedBytes - before.storedBytes,
    latencyMs: { p50: result.latencyMs.p50, p99: result.latencyMs.p99 },
    peakBytes: Object.fromEntries(peaks),
  };
}

/** The same for a while, under other keys: code is compiled, and connections to the catalog are open. */
async function warmUp(
  target: IngestTarget,
  load: IngestLoad,
  tables: readonly string[],
): Promise<Pick<LoadResult, "accepted" | "rowsAcknowledged">> {
  if (load.warmUpMs === 0) return { accepted: 0, rowsAcknowledged: 0 };
  const generator = await prepareLoad({ ...planFor(target, load, tables, "warm"), repeatForMs: load.warmUpMs });
  return await generator.run();
}

function planFor(target: IngestTarget, load: IngestLoad, tables: readonly string[], run: string): LoadPlan {
  const { data, cut, clients } = load;
  return planOf(target.url, { file: data.path, cut, connections: clients, tables, keyPrefix: `${load.name}-${run}` });
}

function paceOf({ perSecond = 0, durationMs }: IngestLoad): NonNullable<LoadPlan["pace"]> {
  return { perSecond, durationMs, waits: true };
}

async function mustHold(target: IngestTarget, tables: readonly string[], rows: number): Promise<void> {
  let held = 0;
  for (const table of tables) held += await rowsIn(target.queryUrl, table);
  if (held !== rows) throw new Error(`${tables.join(", ")} hold ${held} rows, and ${rows} were acknowledged`);
}

/** Processes of the engine itself, each of which has a main thread. */
function engineParts({ pids }: IngestTarget): CostPart[] {
  return [...pids.keys()].filter((part) => part !== "postgres" && part !== "store");
}

function pidOf({ pids }: IngestTarget, part: CostPart): number {
  const pid = pids.get(part);
  if (pid === undefined) throw new Error(`there is no process of the part ${part}`);
  return pid;
}

type ByName = Readonly<Record<string, number>>;

function cpuOf(target: IngestTarget): { all: ByName; mainThread: ByName } {
  const all = [...target.pids].map(([part, pid]) => [part, cpuSecondsOf(pid)] as const);
  const own = engineParts(target).map((part) => [part, mainThreadSecondsOf(pidOf(target, part))] as const);
  return { all: Object.fromEntries(all), mainThread: Object.fromEntries(own) };
}

function lessBefore(after: ByName, before: ByName): Record<string, number> {
  return Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)]));
}

type Spending = { commits: number; storedBytes: number; storeRequests: ByName; walBytes: number | null };

/** What the engine has counted so far of what ingest spends beside CPU. */
async function spendingOf({ urls, walBytes }: IngestTarget): Promise<Spending> {
  const storeRequests: Record<string, number> = {};
  let [commits, storedBytes] = [0, 0];
  for (const url of urls) {
    const metrics = await scrape(url);
    const sum = (name: string) => [...byLabel(metrics, name, "").values()].reduce((total, value) => total + value, 0);
    commits += sum("engine_catalog_commit_duration_seconds_count");
    storedBytes += sum("engine_extents_committed_bytes_total");
    for (const [kind, requests] of byLabel(metrics, "engine_objstore_requests_total", "kind")) {
      storeRequests[kind] = (storeRequests[kind] ?? 0) + requests;
    }
  }
  return { commits, storedBytes, storeRequests, walBytes: await walBytes() };
}

/** By name: how bodies are cut, and how many clients send them. */
export const BODIES = {
  lone: { cut: { rows: 1 }, clients: 1 },
  rows1: { cut: { rows: 1 }, clients: 64 },
  rows10: { cut: { rows: 10 }, clients: 32 },
  kib64: { cut: { sizeBytes: 64 * 1024 }, clients: 8 },
  mib: { cut: { sizeBytes: MIB }, clients: 4 },
  mib16: { cut: { sizeBytes: 16 * MIB }, clients: 2 },
} as const satisfies Record<string, Pick<IngestLoad, "cut" | "clients">>;
export type BodiesName = keyof typeof BODIES;

/** Of what one server takes at most; latency grows with it. */
const UTILISATIONS = [0.3, 0.7];
/** A client sends one request at a time; those that fall due should seldom wait for one. */
const OPEN_LOOP_CLIENTS = 256;
const MANY_TABLES = 10;

type Ladder = {
  /** Each client sends its next request when it has its answer. */
  closedLoop: readonly BodiesName[];
  manyTables: readonly BodiesName[];
  /** At shares of what the same took before. */
  openLoop: readonly BodiesName[];
  /** In bodies of 1 MiB. */
  shapes: readonly ShapeName[];
};

const FULL: Ladder = {
  // Some of them twice, for how much they differ.
  closedLoop: ["lone", "rows1", "rows10", "kib64", "mib", "mib16", "rows1", "kib64", "mib"],
  manyTables: ["kib64", "mib"],
  openLoop: ["rows1", "kib64"],
  shapes: ["wide", "nested", "numbers", "text"],
};
const BRIEF: Ladder = {
  closedLoop: ["lone", "rows1", "kib64"],
  manyTables: ["kib64"],
  openLoop: ["kib64"],
  shapes: ["wide"],
};

/** How long a load runs, and how much data it repeats. */
export function sizesOf({ brief }: Pick<StepContext, "brief">) {
  return brief
    ? { durationMs: 250, warmUpMs: 0, rowsBytes: MIB }
    : { durationMs: 3_000, warmUpMs: 500, rowsBytes: 40 * MIB };
}

/** One process on SQLite and the local disk. */
export async function measureIngest(context: StepContext): Promise<IngestObservation[]> {
  const { folder, signal, seed } = context;
  const { rowsBytes, ...times } = sizesOf(context);
  const { closedLoop, manyTables, openLoop, shapes } = context.brief ? BRIEF : FULL;
  const home = join(folder, "ingest");
  await mkdir(home, { recursive: true });
  const server = await startBenchServer({ home, env: { ENGINE_QUERY_WORKERS: "1" } });
  try {
    const target = singleTarget(server);
    const logs = await writeRows(folder, { shape: "logs", sizeBytes: rowsBytes, seed });
    const observations: IngestObservation[] = [];
    const observe = async (load: Omit<IngestLoad, keyof typeof times>) => {
      signal.throwIfAborted();
      const observation = await observeIngest(target, { ...load, ...times });
      observations.push(observation);
      return observation;
    };
    const closed = new Map<string, IngestObservation>();
    for (const [i, name] of closedLoop.entries()) {
      closed.set(name, await observe({ name: `${name}_${i}`, data: logs, ...BODIES[name], tables: 1 }));
    }
    for (const name of manyTables) {
      await observe({ name: `${name}_tables`, data: logs, ...BODIES[name], tables: MANY_TABLES });
    }
    for (const name of openLoop) {
      const { requests = 0, seconds = 1 } = closed.get(name) ?? {};
      for (const share of UTILISATIONS) {
        const perSecond = Math.max(1, Math.round((requests / seconds) * share));
        const open = { ...BODIES[name], clients: OPEN_LOOP_CLIENTS, perSecond };
        await observe({ name: `${name}_at_${share * 100}`, data: logs, ...open, tables: 1 });
      }
    }
    for (const shape of shapes) {
      signal.throwIfAborted();
      const data = await writeRows(folder, { shape, sizeBytes: rowsBytes, seed });
      await observe({ name: shape, data, ...BODIES.mib, tables: 1 });
      await rm(data.path);
    }
    return observations;
  } finally {
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

/** Its rows are visible when they are acknowledged. */
function singleTarget(server: BenchServer): IngestTarget {
  return {
    deployment: "single",
    viaEdge: false,
    url: server.url,
    queryUrl: server.url,
    urls: [server.url],
    pids: new Map([["server", server.pid]]),
    walBytes: () => Promise.resolve(null),
    createTable: (name, { columns }) => createTable(server.home, name, columns),
    untilVisible: () => Promise.resolve(),
  };
}

/** As `engine create-table` does beside a server. */
async function createTable(home: string, name: string, columns: RowsFile["columns"]): Promise<void> {
  await withCatalog(home, (catalog) => catalog.createTable({ database: "default", name, columns }), "admin");
}

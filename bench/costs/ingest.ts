import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { IngestObservation } from "../../src/capacity/costs/costs.ts";
import { withCatalog } from "../support/catalog.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import type { ShapeName } from "../support/shapes.ts";
import { observeIngest, type IngestLoad } from "./ingest-load.ts";
import type { IngestTarget } from "./ingest-target.ts";
import { measuredRun, settled, type LoadRun } from "./noise.ts";
import { writeRows, type RowsFile } from "./rows-file.ts";
import type { StepContext } from "./step.ts";

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

const WARM_UP: readonly BodiesName[] = ["rows1", "kib64", "mib"];

/** How long a load runs, and how much data it repeats. */
export function sizesOf({ brief }: Pick<StepContext, "brief">) {
  return brief
    ? { durationMs: 250, warmUpMs: 0, rowsBytes: MIB }
    : { durationMs: 3_000, warmUpMs: 500, rowsBytes: 40 * MIB };
}

/** One process on SQLite and the local disk. */
export async function measureIngest(context: StepContext): Promise<IngestObservation[]> {
  const home = join(context.folder, "ingest");
  await mkdir(home, { recursive: true });
  const server = await startBenchServer({ home, env: { ENGINE_QUERY_WORKERS: "1" } });
  try {
    return await climb(singleTarget(server), context.brief ? BRIEF : FULL, context);
  } finally {
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

async function climb(target: IngestTarget, ladder: Ladder, context: StepContext): Promise<IngestObservation[]> {
  const { folder, signal, seed } = context;
  const { rowsBytes: sizeBytes, ...times } = sizesOf(context);
  const observe = async (load: Omit<IngestLoad, keyof typeof times>) => {
    signal.throwIfAborted();
    return await observeIngest(target, { ...load, ...times });
  };
  const data = await writeRows(folder, { name: "ingest-logs", shape: "logs", sizeBytes, seed });
  // A server's code becomes fast by running: its first seconds cost a third more, and are not counted.
  for (const name of context.brief ? [] : WARM_UP) {
    const load = { name: `warm_${name}`, data, ...BODIES[name], tables: 1 };
    await observeIngest(target, { ...load, ...times });
  }
  const requestsPerSecond = new Map<BodiesName, number>();
  const runs: LoadRun[] = [];
  for (const [i, name] of ladder.closedLoop.entries()) {
    const run = await measuredRun(`${name}_${i}`, (own) => observe({ name: own, data, ...BODIES[name], tables: 1 }));
    runs.push(run);
    requestsPerSecond.set(name, run.observation.requests / run.observation.seconds);
  }
  const observations = await settled(runs);
  for (const name of ladder.manyTables) {
    observations.push(await observe({ name: `${name}_tables`, data, ...BODIES[name], tables: MANY_TABLES }));
  }
  for (const name of ladder.openLoop) {
    for (const share of UTILISATIONS) {
      const perSecond = Math.max(1, Math.round((requestsPerSecond.get(name) ?? 0) * share));
      const open = { cut: BODIES[name].cut, clients: OPEN_LOOP_CLIENTS, perSecond };
      observations.push(await observe({ name: `${name}_at_${share * 100}`, data, ...open, tables: 1 }));
    }
  }
  for (const shape of ladder.shapes) {
    const rows = await writeRows(folder, { name: `ingest-${shape}`, shape, sizeBytes, seed });
    observations.push(await observe({ name: shape, data: rows, ...BODIES.mib, tables: 1 }));
    await rm(rows.path);
  }
  return observations;
}

/** Its rows are visible when they are acknowledged. */
export function singleTarget(server: BenchServer): IngestTarget {
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

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CreateTable } from "../../src/catalog/catalog.ts";
import { hasFixedType } from "../../src/format/ndjson/infer-types.ts";
import type { ColumnSpec } from "../../src/format/types.ts";
import { datasetOf, writeDataset, type DataFile } from "../support/data-file.ts";
import { runCheckedIngest, runIngest, type IngestRun } from "../support/ingest-run.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { synthetic, tenKindsOfLogs, type Dataset } from "../support/shapes.ts";
import type { LoadCase } from "./cases.ts";

/** A case with its data and its server, ready for rounds. */
export type Side = {
  case: LoadCase;
  data: DataFile;
  server: BenchServer;
  /** Resident bytes of the server before its first request. */
  idleBytes: number;
  /** One checked run; `round` names its tables and keys. */
  run(round: string): Promise<IngestRun>;
  stop(): Promise<void>;
};

/** While a table is given the extents that it has before. */
const SEED_CONNECTIONS = 64;

export type SideOptions = { folder: string; rounds: readonly string[]; nodeArgs?: readonly string[] };

/** Starts the server of a case with the tables of all rounds; undefined when this machine lacks the data. */
export async function startSide(loadCase: LoadCase, options: SideOptions): Promise<Side | undefined> {
  const dataset = dataOf(loadCase);
  if (dataset === undefined) return undefined;
  const data = await writeDataset(dataset, options.folder);
  const home = await mkdtemp(join(tmpdir(), "engine-bench-"));
  const exist = loadCase.types === "declared" || loadCase.types === "settled";
  const tables = exist ? tablesOf(loadCase, data.columns, options.rounds) : [];
  await seedExtents(loadCase, { home, tables, folder: options.folder });
  const server = await startBenchServer({
    home,
    tables,
    nodeArgs: options.nodeArgs ?? [],
    // One suffices for the checks, and keeps memory for the others.
    env: {
      ENGINE_QUERY_WORKERS: "1",
      ENGINE_HTTP_DRIVER: loadCase.driver,
      ENGINE_INGEST_INFER_TYPES: String(loadCase.types === "inferred"),
    },
  });
  return {
    case: loadCase,
    data,
    server,
    idleBytes: server.memory().residentBytes,
    run: (round) => {
      const { cut, connections } = loadCase;
      const job = { file: data.path, cut, connections, tables: tableNames(loadCase, round), keyPrefix: round };
      return runCheckedIngest(server, job, data, exist);
    },
    stop: async () => {
      await server.stop();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** The tables of a case's round. */
export function tableNames({ tables, extents }: LoadCase, round: string): string[] {
  return Array.from({ length: tables }, (_, i) => `${extents > 0 ? "seeded" : round}_t${i}`);
}

function dataOf({ data, rows }: LoadCase): Dataset | undefined {
  return data === "kinds10" ? tenKindsOfLogs(rows) : datasetOf(data, rows);
}

function tablesOf(loadCase: LoadCase, columns: readonly ColumnSpec[], rounds: readonly string[]): CreateTable[] {
  const extra = Array.from({ length: loadCase.extraColumns }, (_, i): ColumnSpec => {
    return { name: `unused_${i}`, type: { kind: "string" } };
  });
  const names = new Set(rounds.flatMap((round) => tableNames(loadCase, round)));
  const own = loadCase.types === "settled" ? columns.map(asInferred) : columns;
  return [...names].map((name) => ({ database: "default", name, columns: [...own, ...extra] }));
}

/** The column as the data's values would make it. */
function asInferred({ name, type }: ColumnSpec): ColumnSpec {
  if (hasFixedType(name)) return { name, type };
  return { name, type: type.kind === "int" ? { kind: "long" } : type, inferred: true };
}

/** Gives the case's tables their extents: a server that does not gather makes one of every request. */
async function seedExtents(
  loadCase: LoadCase,
  { home, tables, folder }: { home: string; tables: CreateTable[]; folder: string },
): Promise<void> {
  if (loadCase.extents === 0) return;
  const dataset = { ...synthetic("logs", loadCase.extents, SEED_OF_SEEDS), name: "seeds" };
  const data = await writeDataset(dataset, folder);
  const server = await startBenchServer({ home, tables, env: { ENGINE_STAGING_DISABLED: "true" } });
  try {
    const run = await runIngest(server, {
      file: data.path,
      cut: { rows: 1 },
      connections: SEED_CONNECTIONS,
      tables: tableNames(loadCase, ""),
      keyPrefix: "seed",
    });
    if (run.accepted !== loadCase.extents) throw new Error(`seeding failed: ${run.firstFailure ?? ""}`);
  } finally {
    await server.stop();
  }
}

/** Other rows than those of the measured data. */
const SEED_OF_SEEDS = 2;

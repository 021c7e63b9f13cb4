import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Costs } from "../../src/capacity/costs/costs.ts";
import { settle } from "../load/settle.ts";
import { withCatalog } from "../support/catalog.ts";
import { prepareLoad } from "../support/generator.ts";
import { planOf } from "../support/ingest-run.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer } from "../support/server.ts";
import type { ShapeName } from "../support/shapes.ts";
import { BODIES } from "./ingest.ts";
import { writeRows, type RowsFile } from "./rows-file.ts";
import type { StepContext } from "./step.ts";

export type CompactionObservation = Costs["compaction"][number];

/** The home of a server that is stopped, with one table, as ingest of small bodies leaves it. */
export type LoadedHome = { home: string; table: string; data: RowsFile };

/** Logs, whose table the queries read too, and a tenth of them. */
const OTHERS: readonly ShapeName[] = ["logs", "wide", "nested", "numbers", "text"];
const OTHERS_IN_BRIEF: readonly ShapeName[] = ["wide"];

/** How many rows there are of the table that queries read, of the one beside it that stays fresh, and of every shape. */
export function tableBytesOf({ brief }: Pick<StepContext, "brief">) {
  return brief
    ? { queried: 4 * MIB, fresh: MIB, other: MIB }
    : { queried: 300 * MIB, fresh: 60 * MIB, other: 30 * MIB };
}

/** Merges that table, and smaller ones of every shape. The data of the latter is removed. */
export async function measureCompaction(context: StepContext, large: LoadedHome): Promise<CompactionObservation[]> {
  const observations = [await compacted(large)];
  for (const shape of context.brief ? OTHERS_IN_BRIEF : OTHERS) {
    context.signal.throwIfAborted();
    const loaded = await loadHome(context, {
      name: `compacted-${shape}`,
      shape,
      sizeBytes: tableBytesOf(context).other,
    });
    observations.push(await compacted(loaded));
    await rm(loaded.home, { recursive: true });
    await rm(loaded.data.path);
  }
  return observations;
}

/** Makes a home, and sends the rows once to a server over it. */
export async function loadHome(
  { folder, seed }: StepContext,
  { name, shape, sizeBytes }: { name: string; shape: ShapeName; sizeBytes: number },
): Promise<LoadedHome> {
  const home = join(folder, name);
  await mkdir(home, { recursive: true });
  const data = await writeRows(folder, { name, shape, sizeBytes, seed });
  const tables = [{ database: "default", name: shape, columns: data.columns }];
  const server = await startBenchServer({ home, tables, env: { ENGINE_QUERY_WORKERS: "1" } });
  try {
    await sendOnce(server.url, shape, data);
  } finally {
    await server.stop();
  }
  return { home, table: shape, data };
}

/** Sends every row once. */
export async function sendOnce(url: string, table: string, data: RowsFile): Promise<void> {
  const { cut, clients: connections } = BODIES.kib64;
  const plan = planOf(url, { file: data.path, cut, connections, tables: [table], keyPrefix: table });
  const generator = await prepareLoad(plan);
  const { failed, firstFailure, rowsAcknowledged } = await generator.run();
  if (failed > 0) throw new Error(`requests failed: ${firstFailure ?? ""}`);
  if (rowsAcknowledged !== data.rows) throw new Error(`${rowsAcknowledged} of ${data.rows} rows were acknowledged`);
}

async function compacted({ home, table, data }: LoadedHome): Promise<CompactionObservation> {
  const storedBeforeBytes = await storedBytesOf(home, table);
  const settled = await settle({ place: { kind: "home", home }, tempDir: join(home, "tmp", "settle"), table });
  return {
    shape: data.shape,
    rows: data.rows,
    rawBytes: data.sizeBytes,
    storedBeforeBytes,
    storedAfterBytes: settled.sizeBytes,
    writtenBytes: settled.writtenBytes,
    cpuSeconds: settled.cpuSeconds,
    peakBytes: settled.peakBytes,
  };
}

/** Bytes of the table's live extents. */
async function storedBytesOf(home: string, table: string): Promise<number> {
  return await withCatalog(home, async (catalog) => {
    const found = await catalog.table("default", table);
    if (found === undefined) throw new Error(`there is no table ${table}`);
    const extents = await catalog.extents(found.id, (await catalog.head()).id, {}, []);
    return extents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  });
}

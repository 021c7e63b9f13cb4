import type { ExtentMerge, ExtentSummary, Snapshot, TableRecord } from "../catalog.ts";
import { INT64_MIN } from "../int64.ts";
import { mergesConserveRows } from "../invariants.ts";
import { insertExtents, type EncodedExtent } from "./commit.ts";
import { refusePendingDeletion } from "./pending-deletion.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { endExtent, findLiveExtents } from "./extents.ts";
import type { SchemaReader } from "./schema.ts";
import { insertSnapshot, nextSnapshot } from "./snapshots.ts";
import { addToTotals } from "./totals.ts";

/** A merge as it travels to the writer's thread. */
export type EncodedMerge = Omit<ExtentMerge, "outputs"> & { outputs: readonly EncodedExtent[] };

/** Replaces extents within the transaction that the caller has begun; undefined when an input is not alive. */
export function mergeExtents(
  connection: Connection,
  schema: SchemaReader,
  nowMs: number,
  merge: EncodedMerge,
): Snapshot | undefined {
  const { tableId, inputs, outputs, schemaVersion } = merge;
  if (schema.isDropped(tableId)) return undefined;
  const table = tableOf(schema, merge);
  if (inputs.length === 0 || new Set(inputs).size < inputs.length) {
    throw new Error("a merge has no input, or one twice");
  }
  const live = findLiveExtents(connection, tableId, inputs);
  if (live.length < inputs.length) return undefined;
  const ended = live.map(({ summary }) => summary);
  mergesConserveRows(sumOfRows(ended), sumOfRows(outputs));
  refusePendingDeletion(
    connection,
    outputs.map(({ id }) => id),
  );

  const snapshot = nextSnapshot(connection, nowMs);
  endInputs(connection, tableId, ended, snapshot);
  const newestNs = live.reduce((newest, extent) => (extent.newestNs > newest ? extent.newestNs : newest), INT64_MIN);
  insertExtents(connection, table, { extents: outputs, snapshot, schemaVersion, newestNs });
  insertSnapshot(connection, snapshot);
  return snapshot;
}

export function tableOf(
  schema: SchemaReader,
  { tableId, schemaVersion }: Pick<EncodedMerge, "tableId" | "schemaVersion">,
): TableRecord {
  const table = schema.tableById(tableId);
  if (table === undefined) throw new Error(`a merge names table id ${tableId}, which does not exist`);
  if (schemaVersion <= table.schemaVersion) return table;
  throw new Error(`a merge of table ${table.name} has schema version ${schemaVersion}, which is to come`);
}

/** Ends the extents that others replace at the snapshot, and takes them out of the totals. */
export function endInputs(
  connection: Connection,
  tableId: number,
  inputs: readonly ExtentSummary[],
  snapshot: Snapshot,
): void {
  const end = { snapshotId: snapshot.id, deletedAtMs: snapshot.committedAtMs };
  for (const { id } of inputs) endExtent(connection, tableId, id, end);
  addToTotals(connection, tableId, {
    rows: -sumOfRows(inputs),
    extents: -inputs.length,
    sizeBytes: -inputs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  });
}

export function sumOfRows(extents: readonly { rows: number }[]): number {
  return extents.reduce((sum, { rows }) => sum + rows, 0);
}

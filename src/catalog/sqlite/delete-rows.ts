import type { RowDeletion, Snapshot } from "../catalog.ts";
import { INT64_MIN } from "../int64.ts";
import { deletionsConserveRows } from "../invariants.ts";
import { insertExtents, type EncodedExtent } from "./commit.ts";
import { refusePendingDeletion } from "./pending-deletion.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { findLiveExtents } from "./extents.ts";
import { endInputs, sumOfRows, tableOf } from "./merge.ts";
import { runRecords } from "../../db/sqlite/records.ts";
import type { SchemaReader } from "./schema.ts";
import { insertSnapshot, nextSnapshot } from "./snapshots.ts";

/** A deletion as it travels to the writer's thread. */
export type EncodedDeletion = Omit<RowDeletion, "groups"> & {
  groups: readonly { inputs: readonly string[]; outputs: readonly EncodedExtent[] }[];
};

/** Deletes rows within the transaction that the caller has begun; undefined when an input is not alive. */
export function deleteRows(
  connection: Connection,
  schema: SchemaReader,
  nowMs: number,
  deletion: EncodedDeletion,
): Snapshot | undefined {
  const { tableId, groups, schemaVersion, rows, also = [] } = deletion;
  if (schema.isDropped(tableId)) return undefined;
  const table = tableOf(schema, deletion);
  const inputs = groups.flatMap((group) => group.inputs);
  if (new Set(inputs).size < inputs.length) throw new Error("a deletion has an input twice");
  const live = new Map(findLiveExtents(connection, tableId, inputs).map((extent) => [extent.summary.id, extent]));
  if (live.size < inputs.length) return undefined;
  const ended = [...live.values()].map(({ summary }) => summary);
  const outputs = groups.flatMap((group) => group.outputs);
  deletionsConserveRows(sumOfRows(ended), sumOfRows(outputs), rows);
  refusePendingDeletion(
    connection,
    outputs.map(({ id }) => id),
  );

  const snapshot = nextSnapshot(connection, nowMs);
  endInputs(connection, tableId, ended, snapshot);
  for (const group of groups) {
    let newestNs = INT64_MIN;
    for (const id of group.inputs) {
      const inputNs = live.get(id)?.newestNs ?? INT64_MIN;
      if (inputNs > newestNs) newestNs = inputNs;
    }
    insertExtents(connection, table, { extents: group.outputs, snapshot, schemaVersion, newestNs });
  }
  connection.run("UPDATE tables SET readable_from = ? WHERE id = ?", snapshot.id, tableId);
  insertSnapshot(connection, snapshot);
  runRecords(connection, nowMs, also);
  return snapshot;
}

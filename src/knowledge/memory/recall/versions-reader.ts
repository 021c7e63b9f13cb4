import type { RecordStore } from "../../../db/records.ts";
import type { EdgeRecord, NodeRecord } from "../model.ts";
import { READ_COLUMNS, versionOfRow, type StoredVersion } from "../rows.ts";
import { chunksOf } from "../store.ts";

export type VersionKey = { id: string; version: number };

/** Versions in one statement. Texts of statements are kept prepared, so there are as many as sizes. */
const AT_ONCE = [8, 32, 128] as const;

/** Reads versions by their keys; what is gone meanwhile is missing. */
export class VersionsReader {
  readonly #records: Pick<RecordStore, "rows">;

  constructor(records: Pick<RecordStore, "rows">) {
    this.#records = records;
  }

  async nodes(databaseId: number, keys: readonly VersionKey[]): Promise<Map<string, NodeRecord>> {
    const found = await this.#read(databaseId, "node", keys);
    return new Map(found.flatMap((row) => (row.kind === "node" && !row.erased ? [[row.record.id, row.record]] : [])));
  }

  async edges(databaseId: number, keys: readonly VersionKey[]): Promise<Map<string, EdgeRecord>> {
    const found = await this.#read(databaseId, "edge", keys);
    return new Map(found.flatMap((row) => (row.kind === "edge" && !row.erased ? [[row.record.id, row.record]] : [])));
  }

  async #read(databaseId: number, kind: "node" | "edge", keys: readonly VersionKey[]): Promise<StoredVersion[]> {
    const found: StoredVersion[] = [];
    for (const chunk of chunksOf(keys, AT_ONCE)) {
      const which = chunk.map(() => "(database_id = ? AND kind = ? AND id = ? AND version = ?)");
      const values = chunk.flatMap(({ id, version }) => [databaseId, kind, id, version]);
      const sql = `SELECT ${READ_COLUMNS} FROM memory_records WHERE ${which.join(" OR ")}`;
      const rows = await this.#records.rows(sql, values);
      found.push(...rows.map(versionOfRow));
    }
    return found;
  }
}

import { NOW, type RecordStore } from "../db/records.ts";
import { serverRow, type ServerRow } from "../db/schema-upkeep.ts";

/** What a server says of itself. */
export type Announcement = Pick<ServerRow, "id" | "name" | "version" | "knownSchema"> & { roles: string };

/** The table `servers`: a row for each server that works on the catalog. */
export class ServerRows {
  readonly #records: Pick<RecordStore, "rows" | "write">;

  constructor(records: Pick<RecordStore, "rows" | "write">) {
    this.#records = records;
  }

  /** Writes the server's row, or one more heart-beat into it. */
  async beat({ id, name, roles, version, knownSchema }: Announcement): Promise<void> {
    const values = [id, name, roles, version, knownSchema, NOW, NOW];
    await this.#records.write({ sql: BEAT, values });
  }

  async all(): Promise<ServerRow[]> {
    const rows = await this.#records.rows("SELECT id, name, version, known_schema, beats FROM servers ORDER BY id");
    return rows.map(serverRow);
  }

  /** Unless it showed another sign of life. */
  async removeSilent({ id, beats }: ServerRow): Promise<void> {
    await this.#records.write({ sql: "DELETE FROM servers WHERE id = ? AND beats = ?", values: [id, beats] });
  }

  async remove(id: string): Promise<void> {
    await this.#records.write({ sql: "DELETE FROM servers WHERE id = ?", values: [id] });
  }

  /** How many migrations a program must know to work on the catalog. */
  async oldestSchema(): Promise<number> {
    const [row] = await this.#records.rows("SELECT oldest_schema FROM meta");
    if (row === undefined) throw new Error("the catalog no longer says which programs may run on it");
    return Number(row["oldest_schema"]);
  }
}

const BEAT =
  "INSERT INTO servers (id, name, roles, version, known_schema, started_at_ms, seen_at_ms, beats) " +
  "VALUES (?, ?, ?, ?, ?, ?, ?, 1) " +
  "ON CONFLICT (id) DO UPDATE SET seen_at_ms = excluded.seen_at_ms, beats = servers.beats + 1";

import { NOW, type RecordStore } from "../db/records.ts";
import { serverRow, type ServerRow } from "../db/schema-upkeep.ts";

/** What a server says of itself. */
export type Announcement = Pick<ServerRow, "id" | "name" | "version" | "knownSchema"> & {
  roles: string;
  /** Where others reach it; undefined where it answers nothing that they ask, or does not listen yet. */
  url?: string | undefined;
};

/** Where a server that answers others is. */
export type ServerAddress = Pick<ServerRow, "id" | "name" | "beats"> & { url: string };

/** The table `servers`: a row for each server that works on the catalog. */
export class ServerRows {
  readonly #records: Pick<RecordStore, "rows" | "write">;

  constructor(records: Pick<RecordStore, "rows" | "write">) {
    this.#records = records;
  }

  /** Writes the server's row, or one more heart-beat into it. */
  async beat({ id, name, roles, version, knownSchema, url }: Announcement): Promise<void> {
    const values = [id, name, roles, version, knownSchema, NOW, NOW, url ?? null];
    await this.#records.write({ sql: BEAT, values });
  }

  async all(): Promise<ServerRow[]> {
    const rows = await this.#records.rows("SELECT id, name, version, known_schema, beats FROM servers ORDER BY id");
    return rows.map(serverRow);
  }

  /** Of those that answer others, each once: one that was started again has the address of the one before. */
  async addresses(): Promise<ServerAddress[]> {
    const sql = "SELECT id, name, url, beats FROM servers WHERE url IS NOT NULL ORDER BY started_at_ms, id";
    const rows = await this.#records.rows(sql);
    const found = rows.map(({ id, name, url, beats }) => {
      return { id: String(id), name: String(name), url: String(url), beats: Number(beats) };
    });
    return [...new Map(found.map((server) => [server.url, server])).values()];
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
  "INSERT INTO servers (id, name, roles, version, known_schema, started_at_ms, seen_at_ms, url, beats) " +
  "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1) " +
  "ON CONFLICT (id) DO UPDATE SET seen_at_ms = excluded.seen_at_ms, url = excluded.url, beats = servers.beats + 1";

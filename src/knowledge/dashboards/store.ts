import { NOW, type RecordRow, type RecordStore, type Statement } from "../../db/records.ts";
import type { Scope } from "../../auth/caller.ts";
import { databasesOf, type DashboardDocument } from "./document.ts";
import { DASHBOARD_LIMITS } from "./limits.ts";

/** One version of a dashboard, and when and by whom it was saved. */
export type DashboardVersion = {
  version: number;
  savedAtMs: number;
  savedBy: string;
  /** Folded names. */
  databases: readonly string[];
};

export type StoredVersion = DashboardVersion & { document: DashboardDocument };

export type DashboardHead = {
  id: string;
  name: string;
  description: string | null;
  panelCount: number;
  version: number;
  databases: readonly string[];
  createdAtMs: number;
  createdBy: string;
  updatedAtMs: number;
  updatedBy: string;
};

export type Dashboard = DashboardHead & { document: DashboardDocument };

export type DashboardFilter = { scope: Scope; name?: string | undefined; before?: string | undefined; limit: number };

const HEAD =
  "d.id, d.name, d.description, d.panel_count, d.version, d.created_at_ms, d.created_by, d.updated_at_ms, " +
  "d.updated_by, v.databases";
const CURRENT = "FROM dashboards AS d JOIN dashboard_versions AS v ON v.dashboard_id = d.id AND v.version = d.version";

/** Dashboards as records of the catalog. Nobody's rights are asked, but for the scope that a list is given. */
export class DashboardStore {
  readonly #records: RecordStore;

  constructor(records: RecordStore) {
    this.#records = records;
  }

  async count(): Promise<number> {
    const [row] = await this.#records.rows("SELECT count(*) AS dashboards FROM dashboards");
    return Number(row?.["dashboards"]);
  }

  /** Those whose databases are all in the scope, the last id first. */
  async list({ scope, name, before, limit }: DashboardFilter): Promise<DashboardHead[]> {
    const places = scope?.map(() => "?").join(", ");
    const outside = places === "" ? "" : `AND x.folded_name NOT IN (${places})`;
    const tests = [
      ...(name === undefined ? [] : [["d.name = ?", [name]] as const]),
      ...(before === undefined ? [] : [["d.id < ?", [before]] as const]),
      ...(scope === undefined
        ? []
        : [
            [
              `NOT EXISTS (SELECT 1 FROM dashboard_databases AS x WHERE x.dashboard_id = d.id ${outside})`,
              scope,
            ] as const,
          ]),
    ];
    const where = tests.length === 0 ? "" : `WHERE ${tests.map(([test]) => test).join(" AND ")}`;
    const sql = `SELECT ${HEAD} ${CURRENT} ${where} ORDER BY d.id DESC LIMIT ?`;
    return (await this.#records.rows(sql, [...tests.flatMap(([, values]) => values), limit])).map(headOf);
  }

  async find(id: string): Promise<Dashboard | undefined> {
    const sql = `SELECT ${HEAD}, v.document ${CURRENT} WHERE d.id = ?`;
    const [row] = await this.#records.rows(sql, [id]);
    return row === undefined ? undefined : { ...headOf(row), document: documentIn(row) };
  }

  /** The newest first, at most as many as are kept. */
  async versions(id: string): Promise<DashboardVersion[]> {
    const sql =
      "SELECT version, databases, saved_at_ms, saved_by FROM dashboard_versions WHERE dashboard_id = ? " +
      "ORDER BY version DESC LIMIT ?";
    return (await this.#records.rows(sql, [id, DASHBOARD_LIMITS.versions])).map(versionOf);
  }

  async version(id: string, version: number): Promise<StoredVersion | undefined> {
    const sql =
      "SELECT version, databases, saved_at_ms, saved_by, document FROM dashboard_versions " +
      "WHERE dashboard_id = ? AND version = ?";
    const [row] = await this.#records.rows(sql, [id, version]);
    return row === undefined ? undefined : { ...versionOf(row), document: documentIn(row) };
  }

  /** Version 1. Resolves to undefined where a dashboard has the id. */
  async add(id: string, document: DashboardDocument, by: string): Promise<Dashboard | undefined> {
    const insert: Statement = {
      sql:
        "INSERT INTO dashboards (id, name, description, panel_count, version, created_at_ms, created_by, " +
        "updated_at_ms, updated_by) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING *",
      values: [id, document.name, document.description, document.panels.length, NOW, by, NOW, by],
      mustReturn: 1,
    };
    return await this.#save(insert, { id, version: 1, document });
  }

  /** The next version, of the dashboard as it was read. Resolves to undefined where it has changed since, or is gone. */
  async replace(
    { id, version }: Pick<Dashboard, "id" | "version">,
    document: DashboardDocument,
    by: string,
  ): Promise<Dashboard | undefined> {
    const update: Statement = {
      sql:
        "UPDATE dashboards SET name = ?, description = ?, panel_count = ?, version = ?, updated_at_ms = ?, " +
        "updated_by = ? WHERE id = ? AND version = ? RETURNING *",
      values: [document.name, document.description, document.panels.length, version + 1, NOW, by, id, version],
      mustReturn: 1,
    };
    return await this.#save(update, { id, version: version + 1, document });
  }

  /** With `noted` in the same transaction. Resolves to whether it was there, in that version. */
  async remove({ id, version }: Pick<Dashboard, "id" | "version">, noted: Statement): Promise<boolean> {
    const outcome = await this.#records.transact([
      { sql: "DELETE FROM dashboards WHERE id = ? AND version = ? RETURNING id", values: [id, version], mustReturn: 1 },
      { sql: "DELETE FROM dashboard_versions WHERE dashboard_id = ?", values: [id] },
      { sql: "DELETE FROM dashboard_databases WHERE dashboard_id = ?", values: [id] },
      noted,
    ]);
    return outcome.done;
  }

  /** The dashboard, its version and what lists look at, and no more versions than are kept: all in one transaction. */
  async #save(
    head: Statement,
    { id, version, document }: { id: string; version: number; document: DashboardDocument },
  ): Promise<Dashboard | undefined> {
    const databases = databasesOf(document);
    // Statements may run before it is known what the first returned: none may break a rule where it changed nothing.
    const outcome = await this.#records.transact([
      head,
      {
        sql:
          "INSERT INTO dashboard_versions (dashboard_id, version, document, databases, saved_at_ms, saved_by) " +
          "SELECT id, version, ?, ?, updated_at_ms, updated_by FROM dashboards WHERE id = ? AND version = ? " +
          "ON CONFLICT DO NOTHING",
        values: [JSON.stringify(document), JSON.stringify(databases), id, version],
      },
      {
        sql: "DELETE FROM dashboard_versions WHERE dashboard_id = ? AND version <= ?",
        values: [id, version - DASHBOARD_LIMITS.versions],
      },
      { sql: "DELETE FROM dashboard_databases WHERE dashboard_id = ?", values: [id] },
      ...(databases.length === 0 ? [] : [databasesStatement(id, databases)]),
    ]);
    const row = outcome.done ? outcome.rows[0]?.[0] : undefined;
    if (row === undefined) return undefined;
    return { ...headOf({ ...row, databases: JSON.stringify(databases) }), document };
  }
}

function databasesStatement(id: string, databases: readonly string[]): Statement {
  const places = databases.map(() => "(?, ?)").join(", ");
  return {
    sql: `INSERT INTO dashboard_databases (dashboard_id, folded_name) VALUES ${places} ON CONFLICT DO NOTHING`,
    values: databases.flatMap((name) => [id, name]),
  };
}

function headOf(row: RecordRow): DashboardHead {
  const description = row["description"];
  return {
    id: String(row["id"]),
    name: String(row["name"]),
    description: typeof description === "string" ? description : null,
    panelCount: Number(row["panel_count"]),
    version: Number(row["version"]),
    databases: databasesIn(row),
    createdAtMs: Number(row["created_at_ms"]),
    createdBy: String(row["created_by"]),
    updatedAtMs: Number(row["updated_at_ms"]),
    updatedBy: String(row["updated_by"]),
  };
}

function versionOf(row: RecordRow): DashboardVersion {
  return {
    version: Number(row["version"]),
    savedAtMs: Number(row["saved_at_ms"]),
    savedBy: String(row["saved_by"]),
    databases: databasesIn(row),
  };
}

function databasesIn(row: RecordRow): string[] {
  return JSON.parse(String(row["databases"])) as string[];
}

/** Only this program wrote it. */
function documentIn(row: RecordRow): DashboardDocument {
  return JSON.parse(String(row["document"])) as DashboardDocument;
}

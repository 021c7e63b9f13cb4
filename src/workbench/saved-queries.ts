import { mayUseDatabase, type Caller } from "../auth/caller.ts";
import { databaseNotFound } from "../auth/name-not-found.ts";
import { mayReach, mayUse, ownerOf } from "../auth/owner.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { foldName } from "../core/names.ts";
import { NOW, type RecordRow, type RecordStore } from "../db/records.ts";
import { WORKBENCH_LIMITS } from "./limits.ts";

export type QueryText = {
  language: "sql" | "kql";
  text: string;
  database: string;
};

export type SavedQuery = QueryText & {
  id: string;
  name: string;
  description: string;
  /** Others may read it. */
  shared: boolean;
  owner: string;
  createdAtMs: number;
  updatedAtMs: number;
};

export type SavedQueryFields = QueryText & Pick<SavedQuery, "name" | "description" | "shared">;

export type SavedQueryFilter = {
  search?: string | undefined;
  before?: string | undefined;
  limit: number;
};

export type SavedQueriesDeps = {
  records: RecordStore;
  catalog: Pick<Catalog, "databases">;
  newId: IdSource;
};

/**
 * Queries with names. Each is its owner's; who else may use its database reads one that is shared, and admins of all
 * databases reach them all. One of a database that the caller may not use does not exist for them, also where it is
 * their own: its text may name what is in there.
 */
export class SavedQueries {
  readonly #deps: SavedQueriesDeps;

  constructor(deps: SavedQueriesDeps) {
    this.#deps = deps;
  }

  /** The newest first: the caller's own and those that are shared. */
  async list({ search, before, limit }: SavedQueryFilter, caller: Caller): Promise<SavedQuery[]> {
    const { databases: scope } = caller;
    if (scope?.length === 0) return [];
    const tests = ["(owner = ? OR shared = 1)"];
    const values: (string | number)[] = [ownerOf(caller)];
    if (scope !== undefined) {
      tests.push(`query_database IN (${scope.map(() => "?").join(", ")})`);
      values.push(...scope.map(foldName));
    }
    if (search !== undefined) {
      const [inName, inText] = [containing("name", search), containing("query_text", search)];
      tests.push(`(${inName.test} OR ${inText.test})`);
      values.push(...inName.values, ...inText.values);
    }
    if (before !== undefined) {
      tests.push("id < ?");
      values.push(before);
    }
    const sql = `SELECT * FROM saved_queries WHERE ${tests.join(" AND ")} ORDER BY id DESC LIMIT ?`;
    return (await this.#deps.records.rows(sql, [...values, limit])).map(toSavedQuery);
  }

  /** Throws `not_found`, also for one that the caller may not read. */
  async get(id: string, caller: Caller): Promise<SavedQuery> {
    const found = await this.#find(id);
    const mayRead = found !== undefined && mayUse(caller, found);
    if (mayRead && mayUseDatabase(caller, found.database)) return found;
    throw notFound(id);
  }

  /** Throws `database_not_found` for a database that the caller may not use, `conflict` for one too many. */
  async create(fields: SavedQueryFields, caller: Caller): Promise<SavedQuery> {
    await this.#checkDatabase(fields, caller);
    const { records, newId } = this.#deps;
    const owner = ownerOf(caller);
    const [counted] = await records.rows("SELECT count(*) AS n FROM saved_queries WHERE owner = ?", [owner]);
    if (Number(counted?.["n"]) >= WORKBENCH_LIMITS.savedQueries) {
      const most = WORKBENCH_LIMITS.savedQueries;
      throw new EngineError("conflict", `you have ${most} saved queries, and may have no more: delete some first`);
    }
    const { name, description, shared, language, text, database } = fields;
    const sql =
      "INSERT INTO saved_queries (id, owner, shared, name, description, language, query_text, query_database, " +
      "created_at_ms, updated_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *";
    const shown = [name, description, language, text, foldName(database)];
    const [row] = await records.write({ sql, values: [newId(), owner, Number(shared), ...shown, NOW, NOW] });
    if (row === undefined) throw new Error("a saved query was not kept");
    return toSavedQuery(row);
  }

  /** Of one's own. Throws `not_found`, `forbidden` for one that somebody else shares, `database_not_found`. */
  async change(id: string, change: Partial<SavedQueryFields>, caller: Caller): Promise<SavedQuery> {
    const before = await this.#owned(id, caller);
    const fields = { ...before, ...change };
    await this.#checkDatabase(fields, caller);
    const sql =
      "UPDATE saved_queries SET shared = ?, name = ?, description = ?, language = ?, query_text = ?, query_database = ?, " +
      "updated_at_ms = ? WHERE id = ? RETURNING *";
    const { shared, name, description, language, text, database } = fields;
    const values = [Number(shared), name, description, language, text, foldName(database), NOW, id];
    const [row] = await this.#deps.records.write({ sql, values });
    if (row === undefined) throw notFound(id);
    return toSavedQuery(row);
  }

  /** Of one's own. Throws `not_found`, `forbidden` for one that somebody else shares. */
  async remove(id: string, caller: Caller): Promise<void> {
    await this.#owned(id, caller);
    await this.#deps.records.write({ sql: "DELETE FROM saved_queries WHERE id = ?", values: [id] });
  }

  async #owned(id: string, caller: Caller): Promise<SavedQuery> {
    const found = await this.get(id, caller);
    if (mayReach(caller, found.owner)) return found;
    throw new EngineError("forbidden", "the saved query is somebody else's: save a copy of your own");
  }

  async #find(id: string): Promise<SavedQuery | undefined> {
    const [row] = await this.#deps.records.rows("SELECT * FROM saved_queries WHERE id = ?", [id]);
    return row === undefined ? undefined : toSavedQuery(row);
  }

  /** As a query of that database does. */
  async #checkDatabase({ database }: QueryText, caller: Caller): Promise<void> {
    if (mayUseDatabase(caller, database)) return;
    throw await databaseNotFound(this.#deps.catalog, { caller, database }, { refused: true });
  }
}

/** Whether a column has that text in it: as it is written, or in another case, as far as the catalog knows letters. */
export function containing(column: string, search: string): { test: string; values: string[] } {
  const pattern = `%${search.replaceAll(/[!%_]/g, (char) => `!${char}`)}%`;
  return {
    test: `(${column} LIKE ? ESCAPE '!' OR lower(${column}) LIKE ? ESCAPE '!')`,
    values: [pattern, pattern.toLowerCase()],
  };
}

export function queryTextIn(row: RecordRow): QueryText {
  return {
    language: row["language"] === "kql" ? "kql" : "sql",
    text: String(row["query_text"]),
    database: String(row["query_database"]),
  };
}

function toSavedQuery(row: RecordRow): SavedQuery {
  return {
    ...queryTextIn(row),
    id: String(row["id"]),
    name: String(row["name"]),
    description: String(row["description"]),
    shared: Number(row["shared"]) === 1,
    owner: String(row["owner"]),
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}

function notFound(id: string): EngineError {
  return new EngineError("not_found", `there is no saved query ${id}`);
}

import { LRUCache } from "lru-cache";
import type { TableRecord } from "../../catalog/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { foldName } from "../../core/names.ts";
import type { ColumnSpec } from "../../format/types.ts";
import type { Target } from "../flush.ts";
import type { IngestRequest } from "../ingest.ts";
import { createTable, findTable, tableNotFound } from "../tables.ts";
import type { CatalogReach } from "./catalog-reach.ts";

/** How often at most the catalog is asked whether any schema has changed. */
const CHECK_MS = 1_000;
/** Tables remembered; the one that was written to least recently goes first. */
const MAX_TABLES = 10_000;

type Entry = { table: TableRecord; generation: number; refreshing: boolean };

/**
 * Tables and their columns as the catalog last had them. Columns never vanish, and a type only widens to one that has all
 * the values: so what is remembered stays true, and may only be less than there is now. One question in a while (`schemaGeneration`) tells
 * whether it is; then a table is read again when it is next written to, beside the write. While the catalog cannot be
 * reached, what is remembered goes on serving.
 *
 * A table that was dropped is remembered until that. What is written to it meanwhile goes by its name, as all that is
 * staged does: the commit finds the table of that name, or makes it.
 */
export class SchemaCache {
  readonly #reach: CatalogReach;
  readonly #clock: Clock;
  readonly #entries = new LRUCache<string, Entry>({ max: MAX_TABLES });
  #generation = -1;
  #nextCheckMs = 0;

  constructor(reach: CatalogReach, clock: Clock) {
    this.#reach = reach;
    this.#clock = clock;
  }

  /**
   * The table that the request names; one that is not remembered is looked up. Undefined when it is missing and may be
   * created. Throws `unavailable` when the look-up needs the catalog and it cannot be reached.
   */
  async table(request: IngestRequest): Promise<TableRecord | undefined> {
    this.#checkGeneration();
    const known = this.#entries.get(nameOf(request));
    if (known === undefined) return this.#read(request);
    if (known.generation !== this.#generation) this.#refresh(known);
    return known.table;
  }

  /** The table as it is remembered; as the catalog has it now when it is not. Undefined when it does not exist. */
  async remembered(target: Target): Promise<TableRecord | undefined> {
    return this.#entries.peek(nameOf(target))?.table ?? this.current(target);
  }

  /** The table as the catalog has it now; undefined when it does not exist. Throws `unavailable`. */
  async current(target: Target): Promise<TableRecord | undefined> {
    return this.#read({ ...target, autoCreate: true });
  }

  /** The same; throws `table_not_found` when it does not exist. */
  async fresh(target: Target): Promise<TableRecord> {
    const table = await this.current(target);
    if (table === undefined) throw tableNotFound(target);
    return table;
  }

  /** Creates the table unless somebody else has. Throws `unavailable`. */
  async create(table: Target & { columns: readonly ColumnSpec[] }, inferTypes: boolean): Promise<void> {
    await this.#reach.ask((catalog) => createTable(catalog, table, inferTypes));
  }

  async #read(request: Pick<IngestRequest, "database" | "table" | "autoCreate">): Promise<TableRecord | undefined> {
    return this.#reach.ask(async (catalog) => {
      // Asked first: the table may then be newer than its number says, and never older.
      const generation = await catalog.schemaGeneration();
      const table = await findTable(catalog, request);
      this.#generation = generation;
      if (table === undefined) return undefined;
      this.#entries.set(nameOf({ database: table.database, table: table.name }), {
        table,
        generation,
        refreshing: false,
      });
      return table;
    });
  }

  /** Whoever writes to it next looks it up, and creates it where they may. */
  #forget(entry: Entry): void {
    const { database, name } = entry.table;
    const key = nameOf({ database, table: name });
    if (this.#entries.peek(key) === entry) this.#entries.delete(key);
  }

  #checkGeneration(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#nextCheckMs) return;
    this.#nextCheckMs = nowMs + CHECK_MS;
    const asking = this.#reach.ask(async (catalog) => {
      this.#generation = await catalog.schemaGeneration();
    });
    asking.catch(ignoreUnreachable);
  }

  #refresh(entry: Entry): void {
    if (entry.refreshing || this.#generation === -1) return;
    entry.refreshing = true;
    const { database, name: table } = entry.table;
    this.fresh({ database, table })
      .catch((error: unknown) => {
        // The name of a database that was dropped may be one that no new database can have.
        const isGone = error instanceof EngineError && ["table_not_found", "invalid_name"].includes(error.code);
        if (isGone) this.#forget(entry);
        else ignoreUnreachable(error);
      })
      .finally(() => (entry.refreshing = false));
  }
}

function nameOf({ database, table }: { database: string; table: string }): string {
  return `${foldName(database)}/${foldName(table)}`;
}

/** What was to be refreshed stays as it is, and true; `CatalogReach` has said that the catalog is away. */
function ignoreUnreachable(error: unknown): void {
  if (!(error instanceof EngineError)) throw error;
}

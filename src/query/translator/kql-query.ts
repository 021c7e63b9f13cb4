import type { Catalog } from "../../catalog/catalog.ts";
import { nowNs, type Clock } from "../../core/clock.ts";
import { EngineError, type ErrorCode } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { foldName } from "../../core/names.ts";
import { formatColumnType } from "../../format/types.ts";
import type { CheckRequest } from "../contract/check.ts";
import type { QueryRequest } from "../contract/query.ts";
import type { TableShape } from "../contract/tables.ts";
import { TOO_DEEP, type KqlRequest, type KqlTranslation } from "../kql/contract.ts";
import { databaseNotFound } from "../../auth/name-not-found.ts";
import { isImpliedDatabase } from "../resolve/resolve-tables.ts";
import { KqlRefusal, type TextBounds, type Translator } from "./translator.ts";

/** What a KQL query is translated with. */
export type KqlDeps = { translator: Translator; catalog: Catalog; clock: Clock; log: Log };

/** A column of a table is not what the query was translated for. */
export class TableChanged extends Error {}

/**
 * A KQL query on its way: its translation, for the columns that its tables had when it was made. Where the columns of the
 * answer depend on rows the translation first asks for keys; with these there is another.
 */
export class KqlQuery {
  readonly translation: KqlTranslation;
  readonly #deps: KqlDeps;
  readonly #asked: QueryRequest | CheckRequest;
  readonly #request: KqlRequest;

  private constructor(
    deps: KqlDeps,
    asked: QueryRequest | CheckRequest,
    made: { request: KqlRequest; translation: KqlTranslation },
  ) {
    this.#deps = deps;
    this.#asked = asked;
    this.#request = made.request;
    this.translation = made.translation;
  }

  /** Translates the text of the request. Rejects with `EngineError`. */
  static async translate(deps: KqlDeps, asked: QueryRequest | CheckRequest, bounds: TextBounds): Promise<KqlQuery> {
    const { text } = asked;
    refuseNul(text);
    const tables = conditionOf(asked) ?? (await namedTables(deps, asked, bounds));
    const request: KqlRequest = { text, ...tables, nowNs: nowNs(deps.clock), keys: [] };
    return new KqlQuery(deps, asked, { request, translation: await deps.translator.translate(request, bounds) });
  }

  /** The same query, with the keys that its translation asks for. */
  async withKeys(keys: readonly string[], bounds: TextBounds): Promise<KqlQuery> {
    const request = { ...this.#request, keys: [...this.#request.keys, keys] };
    const translation = await this.#deps.translator.translate(request, bounds);
    return new KqlQuery(this.#deps, this.#asked, { request, translation });
  }

  /** Throws `TableChanged` when these are not the tables that it was translated for. Columns may have been added. */
  check(planned: readonly TableShape[]): void {
    for (const { name, columns } of planned) {
      const known = this.#request.tables.find((table) => foldName(table.name) === foldName(name));
      const typesNow = new Map(columns.map((column) => [column.name, formatColumnType(column.type)]));
      const changed = known?.columns.find((column) => typesNow.get(column.name) !== formatColumnType(column.type));
      if (known === undefined || changed !== undefined) {
        throw new TableChanged(`the table ${name} was changed while a query over it was translated`);
      }
    }
  }

  /**
   * What a failure of the SQL means to whoever wrote the KQL: no place in it is one in their text, and what DuckDB
   * refuses is our mistake, which is logged with the SQL.
   */
  failureOf(error: unknown): unknown {
    if (error instanceof TableChanged) return new EngineError("unavailable", `${error.message}; try again`);
    if (!(error instanceof EngineError) || error instanceof KqlRefusal) return error;
    const { code, message } = error;
    if (WRONG.has(code)) {
      if (/nested (?:too|more)/.test(message)) return new EngineError("invalid_query", TOO_DEEP);
      const { sql } = this.translation;
      const { requestId, database, text } = this.#asked;
      this.#deps.log.error({ requestId, database, text, sql, failure: message }, "a KQL query was translated wrongly");
      return new EngineError("query_failed", "the translation of this query is wrong: this is a bug of ours");
    }
    const { line: _line, column: _column, suggestion: _suggestion, hint, ...details } = error.details;
    const plain = hint === undefined ? message : message.replace(`; ${hint}`, "");
    const own = code === "execution_error" ? plain.replace(/ when casting from source column .*$/s, "") : plain;
    return new EngineError(code, own, { ...details, ...(error.cause !== undefined && { cause: error.cause }) });
  }
}

/** DuckDB takes it for the end of the text that the query becomes. */
function refuseNul(text: string): void {
  const nul = text.indexOf("\0");
  if (nul === -1) return;
  const lines = text.slice(0, nul).split(/\r\n|\n|\r/);
  const place = { line: lines.length, column: Array.from(lines.at(-1) ?? "").length + 1 };
  throw new EngineError("parse_error", "the query text has a NUL character", place);
}

/** What is refused of SQL, which is none that anybody wrote. */
const WRONG: ReadonlySet<ErrorCode> = new Set(["parse_error", "invalid_query"]);

/** Of a condition on rows of one table no other one can be named. */
function conditionOf({ exploring }: QueryRequest): Omit<KqlRequest, "text" | "nowNs" | "keys"> | undefined {
  if (exploring === undefined) return undefined;
  const { shape } = exploring;
  return { tables: [shapeOf(shape)], tableNames: [shape.name], isCondition: true };
}

async function namedTables(
  { translator, catalog }: KqlDeps,
  asked: QueryRequest,
  bounds: TextBounds,
): Promise<Pick<KqlRequest, "tables" | "tableNames">> {
  const { tables: names, needsAllTables } = await translator.names(asked.text, bounds);
  return await tablesFor(catalog, asked, { names, needsAllTables });
}

/** The tables that the text names, as they are now. All names only where a wildcard needs them, or a mistake is sure. */
async function tablesFor(
  catalog: Catalog,
  { caller, database }: QueryRequest | CheckRequest,
  { names, needsAllTables }: { names: readonly string[]; needsAllTables: boolean },
): Promise<Pick<KqlRequest, "tables" | "tableNames">> {
  const resolution = await catalog.resolve(database, needsAllTables ? [] : names);
  if (resolution === undefined) {
    if (names.length > 0 || !isImpliedDatabase(database)) throw await databaseNotFound(catalog, { caller, database });
    return { tables: [], tableNames: [] };
  }
  const found = resolution.tables.flatMap((table) => table ?? []);
  const isEach = found.length === names.length && names.every((name) => found.some((table) => table.name === name));
  if (isEach && !needsAllTables) return { tables: found.map(shapeOf), tableNames: found.map(({ name }) => name) };
  const all = await catalog.tables(database);
  return { tables: (needsAllTables ? all : found).map(shapeOf), tableNames: all.map(({ name }) => name) };
}

function shapeOf({ name, columns }: TableShape): TableShape {
  return { name, columns: columns.map(({ name: column, type }) => ({ name: column, type })) };
}
